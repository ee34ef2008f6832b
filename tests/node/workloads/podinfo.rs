//! A repository of the shape of podinfo's: kustomization, Deployment with probes, Service, HorizontalPodAutoscaler.

use super::{is_ready, uids, wait_ready};
use crate::support::{TestHost, eventually_within, make_image};
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

const IMAGE: &str = "localhost/podinfo:6";

/// The server: `/healthz` is there at once, `/readyz` after a second.
const SERVER: &str = "#!/bin/sh
mkdir -p /data/www && cd /data/www && echo OK >healthz || exit 1
(sleep 1; echo OK >readyz) &
httpd -f -p 9898 -h /data/www &
trap exit TERM
wait
";

/// The command of its probes.
const CLIENT: &str = "#!/bin/sh
# podcli check http ADDRESS
exec wget -q -O /dev/null \"http://$3\"
";

const KUSTOMIZATION: &str = "
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [hpa.yaml, deployment.yaml, service.yaml]
";

const SERVICE: &str = "
apiVersion: v1
kind: Service
metadata: {name: podinfo}
spec:
  type: ClusterIP
  selector: {app: podinfo}
  ports: [{name: http, port: 9898, protocol: TCP, targetPort: http}]
";

const AUTOSCALER: &str = "
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: podinfo}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: podinfo}
  minReplicas: 2
  maxReplicas: 4
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 99}}}]
";

fn deployment(marker: &str) -> String {
    format!(
        r#"
apiVersion: apps/v1
kind: Deployment
metadata: {{name: podinfo}}
spec:
  replicas: 3
  minReadySeconds: 1
  revisionHistoryLimit: 5
  progressDeadlineSeconds: 60
  strategy:
    rollingUpdate: {{maxUnavailable: 1}}
    type: RollingUpdate
  selector: {{matchLabels: {{app: podinfo}}}}
  template:
    metadata:
      annotations: {{prometheus.io/scrape: "true", prometheus.io/port: "9797"}}
      labels: {{app: podinfo}}
    spec:
      containers:
        - name: podinfod
          image: {IMAGE}
          imagePullPolicy: IfNotPresent
          env: [{{name: MARKER, value: "{marker}"}}, {{name: PODINFO_UI_COLOR, value: "34577c"}}]
          ports:
            - {{name: http, containerPort: 9898, protocol: TCP}}
            - {{name: http-metrics, containerPort: 9797, protocol: TCP}}
            - {{name: grpc, containerPort: 9999, protocol: TCP}}
          command: [podinfo, --port=9898, --level=info]
          livenessProbe:
            exec: {{command: [podcli, check, http, "localhost:9898/healthz"]}}
            initialDelaySeconds: 1
            timeoutSeconds: 5
          readinessProbe:
            exec: {{command: [podcli, check, http, "localhost:9898/readyz"]}}
            timeoutSeconds: 5
            periodSeconds: 1
          resources:
            limits: {{cpu: 2000m, memory: 512Mi}}
            requests: {{cpu: 100m, memory: 64Mi}}
          volumeMounts: [{{name: data, mountPath: /data}}]
      volumes: [{{name: data, emptyDir: {{}}}}]
"#
    )
}

fn import_image(host: &TestHost) {
    let mut options: Vec<String> = Vec::new();
    for (program, text) in [("podinfo", SERVER), ("podcli", CLIENT)] {
        let file = host.path(program);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        options.extend(["--add".to_owned(), format!("{}:/bin/{program}", file.display())]);
    }
    let archive = host.path("podinfo.tar");
    make_image(&options.iter().map(OsStr::new).collect::<Vec<_>>(), &archive, IMAGE);
    host.cli_ok(&["image", "import", archive.to_str().unwrap()]);
}

#[test]
fn podinfo_rolls_out_with_probes() {
    let host = TestHost::start();
    import_image(&host);
    for (name, text) in [("kustomization.yaml", KUSTOMIZATION), ("service.yaml", SERVICE), ("hpa.yaml", AUTOSCALER)] {
        host.write_manifest(name, text);
    }
    host.write_manifest("deployment.yaml", &deployment("one"));
    let first = wait_ready(&host, 3, "one");
    assert!(host.cli_ok(&["get", "services"]).contains("podinfo"));
    assert!(host.cli_ok(&["get", "events"]).contains("HorizontalPodAutoscaler"), "an object that is not run is told of");
    host.write_manifest("deployment.yaml", &deployment("two"));
    let second = eventually_within(Duration::from_secs(60), "the rollout", || {
        let pods = host.pods();
        let ready = pods.iter().filter(|pod| is_ready(pod)).count();
        assert!(ready >= 2, "maxUnavailable is 1, and {ready} of 3 pods are ready");
        let is_new = |pod: &&crate::support::PodView| !uids(&first).contains(&pod.uid());
        let all = pods.len() == 3 && ready == 3 && pods.iter().filter(is_new).count() == 3;
        if all { Ok(pods) } else { Err(format!("{ready} ready")) }
    });
    assert!(uids(&first).is_disjoint(&uids(&second)));
    assert!(host.cli_ok(&["rollout", "status", "deploy/podinfo"]).contains("successfully rolled out"));
}
