//! A StatefulSet of PostgreSQL with claims: an update and a power cut lose nothing.

use super::{name, uids, wait_ready};
use crate::support::{DebianImage, TestHost, eventually};

const POSTGRES: DebianImage = DebianImage {
    package: "postgresql-15",
    // The user has a number that the manifest can name, and no cluster is made inside of the image.
    before: "echo postgres:x:970:970::/var/lib/postgresql:/bin/sh >>\"$1\"/etc/passwd; \
             echo postgres:x:970: >>\"$1\"/etc/group; \
             mkdir -p \"$1\"/etc/postgresql-common; \
             echo create_main_cluster = false >\"$1\"/etc/postgresql-common/createcluster.conf",
    options: &["--env", "PATH=/usr/lib/postgresql/15/bin:/usr/bin:/bin", "--stop-signal", "SIGINT"],
};

/// Three servers with data of their own, the way people write it for the image of Docker Hub.
fn manifest(marker: &str) -> String {
    let image = POSTGRES.reference();
    format!(
        r#"
apiVersion: v1
kind: Service
metadata: {{name: db}}
spec:
  clusterIP: None
  selector: {{app: db}}
  ports: [{{name: postgres, port: 5432}}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: db}}
spec:
  replicas: 3
  serviceName: db
  selector: {{matchLabels: {{app: db}}}}
  template:
    metadata: {{labels: {{app: db}}}}
    spec:
      securityContext: {{runAsUser: 970, runAsGroup: 970, fsGroup: 970, runAsNonRoot: true}}
      containers:
        - name: postgres
          image: {image}
          env:
            - {{name: MARKER, value: "{marker}"}}
            - {{name: PGDATA, value: /var/lib/postgresql/data/pgdata}}
          command:
            - sh
            - -c
            - |
              test -s "$PGDATA/PG_VERSION" || initdb --auth=trust --username=postgres --no-locale >/dev/null
              chmod 700 "$PGDATA" # fsGroup lets the group in, which postgres refuses
              exec postgres -c listen_addresses='*' -c unix_socket_directories=/tmp -c shared_buffers=16MB
          ports: [{{name: postgres, containerPort: 5432}}]
          readinessProbe:
            exec: {{command: [pg_isready, --host=/tmp, --username=postgres]}}
            periodSeconds: 1
          volumeMounts: [{{name: data, mountPath: /var/lib/postgresql/data}}]
  volumeClaimTemplates:
    - metadata: {{name: data}}
      spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}
"#
    )
}

/// Has a server run a statement.
fn sql(host: &TestHost, index: usize, statement: &str) -> String {
    let pod = format!("db-{index}");
    host.exec(
        &pod,
        "postgres",
        &["psql", "--host=/tmp", "--username=postgres", "--tuples-only", "--no-align", "--command", statement],
    )
}

#[test]
fn postgres_keeps_its_data() {
    let mut host = TestHost::start();
    host.cli_ok(&["image", "import", POSTGRES.archive().to_str().unwrap()]);
    host.write_manifest("db.yaml", &manifest("one"));
    let first = wait_ready(&host, 3, "one");
    for index in 0..3 {
        sql(&host, index, "CREATE TABLE sales (till text)");
        sql(&host, index, &format!("INSERT INTO sales VALUES ('till {index}')"));
    }
    host.write_manifest("db.yaml", &manifest("two"));
    let second = wait_ready(&host, 3, "two");
    assert!(uids(&first).is_disjoint(&uids(&second)), "an update replaces each pod");
    for index in 0..3 {
        assert_eq!(sql(&host, index, "SELECT till FROM sales").trim(), format!("till {index}"));
        sql(&host, index, "INSERT INTO sales VALUES ('after the update')");
    }
    host.lose_power();
    host.start_daemon();
    let third = wait_ready(&host, 3, "two");
    let mut names: Vec<String> = third.iter().map(name).collect();
    names.sort();
    assert_eq!(names, ["db-0", "db-1", "db-2"]);
    for index in 0..3 {
        let rows = eventually("the rows", || {
            let rows = sql(&host, index, "SELECT count(*) FROM sales");
            if rows.trim() == "2" { Ok(rows) } else { Err(rows) }
        });
        assert_eq!(rows.trim(), "2");
    }
}
