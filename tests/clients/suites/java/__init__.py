"""Java: pgjdbc, Hibernate, Flyway, Liquibase, jOOQ, MyBatis, Spring JDBC, HikariCP and Jdbi.

One Maven project; `suite.Main` runs the cases of all clients, one class (or a few) a client. Maven
and the JARs work below the suite's cache; nothing is built in the tree.
"""
