"""Settings of Spark that an operator may give by Spark's own names, as `spark_conf.NAME`.

All of them are about where and how executors run. What decides about answers, about files or about
the driver's own JVM is the server's: `spark/session.py`.
"""

from collections.abc import Mapping
from typing import Final

ALLOWED_CONF: Final = frozenset({
    "spark.authenticate", "spark.authenticate.secret", "spark.blockManager.port",
    "spark.driver.blockManager.port", "spark.dynamicAllocation.enabled",
    "spark.dynamicAllocation.executorIdleTimeout", "spark.dynamicAllocation.initialExecutors",
    "spark.dynamicAllocation.maxExecutors", "spark.dynamicAllocation.minExecutors",
    "spark.dynamicAllocation.shuffleTracking.enabled", "spark.executor.cores",
    "spark.executor.heartbeatInterval", "spark.executor.memoryOverhead",
    "spark.io.encryption.enabled",
    "spark.locality.wait", "spark.memory.fraction", "spark.memory.offHeap.enabled",
    "spark.memory.offHeap.size", "spark.memory.storageFraction", "spark.network.crypto.enabled",
    "spark.network.timeout", "spark.port.maxRetries", "spark.rpc.askTimeout",
    "spark.task.maxFailures",
})  # fmt: skip

ALLOWED_PREFIX: Final = "spark.executorEnv."
"""Environment of executors: `spark.executorEnv.JAVA_HOME` names the Java that they run on."""


def refused_conf(conf: Mapping[str, str]) -> str | None:
    """The first name that may not be given, if there is one."""
    for name in conf:
        is_environment = name.startswith(ALLOWED_PREFIX) and name != ALLOWED_PREFIX
        if name not in ALLOWED_CONF and not is_environment:
            return name
    return None
