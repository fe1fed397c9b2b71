"""How the Java suite is built and run."""

from tests.clients.suites.suite import Suite

SUITE = Suite(
    name="java",
    needs=("java", "mvn"),
    set_up=[
        [
            "mvn", "-q", "-B", "-T1", "-Dmaven.repo.local={cache}/repository",
            "-Dbuild.folder={cache}/target", "process-classes",
        ],
    ],
    run=[
        "java", "-Xmx300m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        "-cp", "{cache}/target/lib/*:{cache}/target/classes", "suite.Main",
    ],
    environment={"MAVEN_OPTS": "-Xmx512m"},
)  # fmt: skip
