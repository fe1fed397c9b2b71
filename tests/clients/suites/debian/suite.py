"""The clients of Debian's packages; `install.sh` installs them where root may."""

from tests.clients.suites.suite import Suite

SUITE = Suite(
    name="debian",
    needs=("apt-get", "dpkg-query"),
    set_up=[["bash", "install.sh"]],
    run=["bash", "run.sh", "{python}"],
)
