"""The clients of Node.js: drivers, query builders, ORMs and migrators of npm.

The programs run in the cache, beside the packages: Node.js looks for packages above a program.
"""

from tests.clients.suites.suite import Suite

SUITE = Suite(
    name="node",
    needs=("node", "npm"),
    set_up=[
        ["sh", "-c", "mkdir -p {cache} && cp -R . {cache}/"],
        ["npm", "ci", "--prefix", "{cache}", "--ignore-scripts", "--no-audit", "--no-fund"],
    ],
    run=["sh", "-c", "cp -R . {cache}/ && exec node {cache}/main.mjs"],
)
