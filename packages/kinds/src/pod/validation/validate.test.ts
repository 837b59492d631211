import { describe } from 'vitest';
import { type Changes, testPods } from '../../rules/rules.suite.ts';

const label63 =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const subdomain =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const qualified =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const first = 'spec.containers[0]';
const supported = (...values: string[]) =>
  `supported values: ${values.map((value) => JSON.stringify(value)).join(', ')}`;

describe('the whole pod', () => {
  testPods([
    [{}],
    [{ 'spec.containers': [] }, 'spec.containers: Required value'],
    [
      { 'spec.restartPolicy': 'Sometimes' },
      `spec.restartPolicy: Unsupported value: "Sometimes": ${supported('Always', 'OnFailure', 'Never')}`,
    ],
    [
      { 'spec.dnsPolicy': 'Any' },
      `spec.dnsPolicy: Unsupported value: "Any": ${supported('ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None')}`,
    ],
    [
      { 'spec.dnsPolicy': 'None' },
      'spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None',
    ],
    [
      { 'spec.dnsPolicy': 'None', 'spec.dnsConfig': {} },
      'spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when `dnsPolicy` is None',
    ],
    [
      { 'spec.dnsConfig': { nameservers: ['a', '1.1.1.1', '::1', '2.2.2.2'], options: [{}] } },
      'spec.dnsConfig.nameservers: Invalid value: []string{"a", "1.1.1.1", "::1", "2.2.2.2"}: must not have more than 3 nameservers',
      'spec.dnsConfig.nameservers[0]: Invalid value: "a": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
      'spec.dnsConfig.options[0]: Required value: must not be empty',
    ],
    [{ 'spec.dnsConfig': { searches: ['a.b.'] } }],
    [
      { 'spec.dnsConfig': { searches: ['A'] } },
      `spec.dnsConfig.searches[0]: Invalid value: "A": ${subdomain}`,
    ],
    [
      { 'spec.activeDeadlineSeconds': 0 },
      'spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive',
    ],
    [{ 'spec.hostname': 'A' }, `spec.hostname: Invalid value: "A": ${label63}`],
    [{ 'spec.subdomain': 'a.b' }, 'spec.subdomain: Invalid value: "a.b": must not contain dots'],
    [{ 'spec.nodeName': 'A' }, `spec.nodeName: Invalid value: "A": ${subdomain}`],
    [{ 'spec.runtimeClassName': 'A' }, `spec.runtimeClassName: Invalid value: "A": ${subdomain}`],
    [{ 'spec.priorityClassName': 'A' }, `spec.priorityClassName: Invalid value: "A": ${subdomain}`],
    [
      { 'spec.preemptionPolicy': 'Maybe' },
      `spec.preemptionPolicy: Unsupported value: "Maybe": ${supported('PreemptLowerPriority', 'Never')}`,
    ],
    [
      { 'spec.readinessGates': [{ conditionType: 'a b' }] },
      `spec.readinessGates[0].conditionType: Invalid value: "a b": ${qualified}`,
    ],
    [
      { 'spec.schedulingGates': [{ name: 'a' }], 'spec.nodeName': 'n' },
      'spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared',
    ],
    [
      { 'spec.hostAliases': [{ ip: 'x', hostnames: ['A'] }] },
      'spec.hostAliases[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
      `spec.hostAliases[0].hostnames[0]: Invalid value: "A": ${subdomain}`,
    ],
    [
      { 'spec.overhead': { cpu: '-1' } },
      'spec.overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0',
    ],
    [
      { 'spec.ephemeralContainers': [{ name: 'e', image: 'i' }] },
      'spec.ephemeralContainers: Forbidden: cannot be set on create',
    ],
    [{ 'spec.os': { name: '' } }, 'spec.os.name: Required value: cannot be empty'],
    [
      { 'spec.os': { name: 'plan9' } },
      `spec.os: Unsupported value: "plan9": ${supported('linux', 'windows')}`,
    ],
    [
      { 'spec.nodeSelector': { 'a b': 'c d' } },
      `spec.nodeSelector: Invalid value: "a b": ${qualified}`,
      "spec.nodeSelector: Invalid value: \"c d\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
    ],
  ]);
});

describe('annotations', () => {
  const at = (key: string) => `metadata.annotations["${key}"]`;
  const mirror = 'kubernetes.io/config.mirror';
  const cost = 'controller.kubernetes.io/pod-deletion-cost';
  const apparmor = 'container.apparmor.security.beta.kubernetes.io/b';
  const tolerations = 'scheduler.alpha.kubernetes.io/tolerations';
  testPods([
    [
      { [at(mirror)]: 'x' },
      `metadata.annotations[${mirror}]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set`,
    ],
    [{ [at(cost)]: '-7' }],
    [
      { [at(cost)]: '+7' },
      `metadata.annotations[${cost}]: Invalid value: "+7": must be a 32bit integer`,
    ],
    [{ [at(tolerations)]: '' }],
    [{ [at(tolerations)]: '[{"Key":"a","operator":"Exists","effect":"NoSchedule"}]' }],
    [
      { [at(tolerations)]: '[{"key":"a","operator":"Is"},{"operator":"Equal"}]' },
      `metadata.annotations.${tolerations}[0].operator: Unsupported value: "Is": supported values: "Equal", "Exists"`,
      `metadata.annotations.${tolerations}[1].operator: Invalid value: "Equal": operator must be Exists when \`key\` is empty, which means "match all values and all keys"`,
    ],
    [
      { [at(tolerations)]: '[{"tolerationSeconds":"5"}]' },
      `metadata.annotations: Invalid value: "${tolerations}": json: cannot unmarshal string into Go struct field Toleration.TolerationSeconds of type int64`,
    ],
    [
      { [at(tolerations)]: '{', [at(cost)]: 'x' },
      `metadata.annotations: Invalid value: "${tolerations}": unexpected end of JSON input`,
      `metadata.annotations[${cost}]: Invalid value: "x": must be a 32bit integer`,
    ],
    [
      { [at(tolerations)]: '{' },
      `metadata.annotations: Invalid value: "${tolerations}": unexpected end of JSON input`,
    ],
    [
      { [at('seccomp.security.alpha.kubernetes.io/pod')]: 'odd' },
      'metadata.annotations.seccomp.security.alpha.kubernetes.io/pod: Invalid value: "odd": must be a valid seccomp profile',
    ],
    [
      { [at(apparmor)]: 'odd' },
      `metadata.annotations[${apparmor}]: Invalid value: "b": container not found`,
      `metadata.annotations[${apparmor}]: Invalid value: "odd": invalid AppArmor profile name: "odd"`,
    ],
    [
      {
        [at('seccomp.security.alpha.kubernetes.io/pod')]: 'unconfined',
        'spec.securityContext.seccompProfile': { type: 'RuntimeDefault' },
      },
      'spec.securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match',
    ],
    [
      {
        [at('container.apparmor.security.beta.kubernetes.io/a')]: 'localhost/x',
        [`${first}.securityContext.appArmorProfile`]: { type: 'Localhost', localhostProfile: 'y' },
      },
      `${first}.securityContext.appArmorProfile.localhostProfile: Forbidden: apparmor profile in annotation and field must match`,
    ],
  ]);
});

describe('containers', () => {
  testPods([
    [
      { [`${first}.name`]: '', [`${first}.image`]: '' },
      `${first}.name: Required value`,
      `${first}.image: Required value`,
    ],
    [{ [`${first}.name`]: 'A_b' }, `${first}.name: Invalid value: "A_b": ${label63}`],
    [
      { [`${first}.image`]: ' i' },
      `${first}.image: Invalid value: " i": must not have leading or trailing whitespace`,
    ],
    [
      { [`${first}.imagePullPolicy`]: 'Often' },
      `${first}.imagePullPolicy: Unsupported value: "Often": ${supported('Always', 'IfNotPresent', 'Never')}`,
    ],
    [
      { [`${first}.terminationMessagePolicy`]: 'Log' },
      `${first}.terminationMessagePolicy: Unsupported value: "Log": ${supported('File', 'FallbackToLogsOnError')}`,
    ],
    [
      { 'spec.containers[1]': { name: 'a', image: 'j' } },
      'spec.containers[1].name: Duplicate value: "a"',
    ],
    [
      { [`${first}.restartPolicy`]: 'Always' },
      `${first}.restartPolicy: Forbidden: may not be set for non-init containers`,
    ],
    [
      { 'spec.initContainers': [{ name: 'a', image: 'i', restartPolicy: 'Never' }] },
      'spec.initContainers[0].restartPolicy: Unsupported value: "Never": supported values: "Always"',
      'spec.initContainers[0].name: Duplicate value: "a"',
    ],
    [
      {
        'spec.initContainers': [
          { name: 'b', image: 'i', livenessProbe: { exec: { command: ['x'] } }, lifecycle: {} },
        ],
      },
      'spec.initContainers[0].lifecycle: Forbidden: may not be set for init containers without restartPolicy=Always',
      'spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always',
    ],
    [
      {
        'spec.initContainers': [
          {
            name: 'b',
            image: 'i',
            restartPolicy: 'Always',
            livenessProbe: { exec: { command: ['x'] } },
          },
        ],
      },
    ],
  ]);
});

describe('ports', () => {
  const ports = `${first}.ports`;
  const port = (more: Changes) => ({ containerPort: 80, ...more }) as never;
  testPods([
    [
      { [ports]: [{ containerPort: 0, hostPort: 70000, protocol: 'ICMP' }] },
      `${ports}[0].containerPort: Required value`,
      `${ports}[0].hostPort: Invalid value: 70000: must be between 1 and 65535, inclusive`,
      `${ports}[0].protocol: Unsupported value: "ICMP": ${supported('SCTP', 'TCP', 'UDP')}`,
    ],
    [
      { [ports]: [port({ name: 'a' }), port({ name: 'a', containerPort: 81 })] },
      `${ports}[1].name: Duplicate value: "a"`,
    ],
    [
      { [ports]: [port({ name: '80--' })] },
      `${ports}[0].name: Invalid value: "80--": must contain at least one letter (a-z)`,
      `${ports}[0].name: Invalid value: "80--": must not contain consecutive hyphens`,
      `${ports}[0].name: Invalid value: "80--": must not begin or end with a hyphen`,
    ],
    [
      { [ports]: [port({ hostPort: 8 }), port({ containerPort: 81, hostPort: 8 })] },
      `${ports}[1].hostPort: Duplicate value: "TCP//8"`,
    ],
    [
      { 'spec.hostNetwork': true, [ports]: [port({ hostPort: 81 })] },
      `${ports}[0].hostPort: Invalid value: 81: must match \`containerPort\` when \`hostNetwork\` is true`,
    ],
    [{ 'spec.hostNetwork': true, [ports]: [port({})] }],
  ]);
});

describe('environment', () => {
  const env = `${first}.env`;
  const from = `${env}[0].valueFrom`;
  const oneOf = '`fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`';
  testPods([
    [{ [env]: [{ value: 'x' }] }, `${env}[0].name: Required value`],
    [
      { [env]: [{ name: 'A=' }] },
      `${env}[0].name: Invalid value: "A=": a valid environment variable name must consist only of printable ASCII characters other than '='`,
    ],
    [
      { [env]: [{ name: 'A', valueFrom: {} }] },
      `${from}: Invalid value: "": must specify one of: ${oneOf}`,
    ],
    [
      {
        [env]: [{ name: 'A', value: 'x', valueFrom: { configMapKeyRef: { name: 'c', key: 'k' } } }],
      },
      `${from}: Invalid value: "": may not be specified when \`value\` is not empty`,
    ],
    [
      {
        [env]: [
          {
            name: 'A',
            valueFrom: {
              secretKeyRef: { name: 's', key: 'k' },
              fieldRef: { fieldPath: 'metadata.name' },
            },
          },
        ],
      },
      `${from}: Invalid value: "": may not have more than one field specified at a time`,
    ],
    [
      { [env]: [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: '' } } }] },
      `${from}.secretKeyRef.key: Required value`,
    ],
    [
      { [env]: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'spec.odd' } } }] },
      `${from}.fieldRef.fieldPath: Invalid value: "spec.odd": error converting fieldPath: field label not supported: spec.odd`,
    ],
    [
      { [env]: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'status.phase' } } }] },
      `${from}.fieldRef.fieldPath: Unsupported value: "status.phase": ${supported('metadata.name', 'metadata.namespace', 'metadata.uid', 'spec.nodeName', 'spec.serviceAccountName', 'status.hostIP', 'status.hostIPs', 'status.podIP', 'status.podIPs')}`,
    ],
    [{ [env]: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: "metadata.labels['a/b']" } } }] }],
    [
      { [env]: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: "metadata.labels[']" } } }] },
      `${from}.fieldRef.fieldPath: Invalid value: "metadata.labels[']": error converting fieldPath: field label not supported: metadata.labels[']`,
    ],
    [
      { [env]: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: "metadata.name['a']" } } }] },
      `${from}.fieldRef.fieldPath: Invalid value: "metadata.name['a']": error converting fieldPath: field label does not support subscript: metadata.name['a']`,
    ],
    [
      {
        [env]: [
          { name: 'A', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '2' } } },
        ],
      },
      `${from}.resourceFieldRef.divisor: Invalid value: "limits.cpu": only divisor's values 1m and 1 are supported with the cpu resource`,
    ],
    [
      { [env]: [{ name: 'A', valueFrom: { resourceFieldRef: { resource: 'gpu' } } }] },
      `${from}.resourceFieldRef.resource: Unsupported value: "gpu": ${supported('limits.cpu', 'limits.ephemeral-storage', 'limits.memory', 'requests.cpu', 'requests.ephemeral-storage', 'requests.memory')}`,
    ],
    [
      { [`${first}.envFrom`]: [{ prefix: 'A=' }, { configMapRef: {}, secretRef: { name: 's' } }] },
      `${first}.envFrom[0].prefix: Invalid value: "A=": a valid environment variable name must consist only of printable ASCII characters other than '='`,
      `${first}.envFrom: Invalid value: "": must specify one of: \`configMapRef\` or \`secretRef\``,
      `${first}.envFrom[1].configMapRef.name: Required value`,
      `${first}.envFrom: Invalid value: "": may not have more than one field specified at a time`,
    ],
  ]);
});

describe('resources', () => {
  const resources = `${first}.resources`;
  testPods([
    [
      { [resources]: { limits: { cpu: '1' }, requests: { cpu: '2' } } },
      `${resources}.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`,
    ],
    [
      { [resources]: { limits: { pods: '1' } } },
      `${resources}.limits[pods]: Invalid value: pods: must be a standard resource for containers`,
      `${resources}.requests[pods]: Invalid value: pods: must be a standard resource for containers`,
    ],
    [
      { [resources]: { requests: { gold: '1' } } },
      `${resources}.requests[gold]: Invalid value: gold: must be a standard resource type or fully qualified`,
      `${resources}.requests[gold]: Invalid value: gold: must be a standard resource for containers`,
    ],
    [
      { [resources]: { requests: { 'v.com/gpu': '1' } } },
      `${resources}.limits: Required value: Limit must be set for non overcommitable resources`,
    ],
    [
      { [resources]: { limits: { 'v.com/gpu': '500m' } } },
      `${resources}.limits[v.com/gpu]: Invalid value: resource.Quantity{i:resource.int64Amount{value:500, scale:-3}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:"500m", Format:"DecimalSI"}: must be an integer`,
      `${resources}.requests[v.com/gpu]: Invalid value: resource.Quantity{i:resource.int64Amount{value:500, scale:-3}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:"500m", Format:"DecimalSI"}: must be an integer`,
    ],
    [
      { [resources]: { limits: { 'hugepages-2Mi': '3Mi' } } },
      `${resources}.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi`,
      `${resources}.requests[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi`,
      `${resources}: Forbidden: HugePages require cpu or memory`,
    ],
    [
      {
        [resources]: {
          limits: { cpu: '1', 'hugepages-2Mi': '4Mi' },
          requests: { 'hugepages-2Mi': '2Mi' },
        },
      },
      `${resources}.requests: Invalid value: "2Mi": must be equal to hugepages-2Mi limit of 4Mi`,
    ],
    [
      { [resources]: { requests: { memory: '-1' } } },
      `${resources}.requests[memory]: Invalid value: "-1": must be greater than or equal to 0`,
    ],
  ]);
});

describe('probes and hooks', () => {
  const live = `${first}.livenessProbe`;
  const ready = `${first}.readinessProbe`;
  testPods([
    [{ [live]: {} }, `${live}: Required value: must specify a handler type`],
    [
      { [live]: { exec: {}, tcpSocket: { port: 1 } } },
      `${live}.exec.command: Required value`,
      `${live}.tcpSocket: Forbidden: may not specify more than 1 handler type`,
    ],
    [
      {
        [live]: { httpGet: { port: 0, scheme: 'FTP', httpHeaders: [{ name: 'a b', value: '' }] } },
      },
      `${live}.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive`,
      `${live}.httpGet.scheme: Unsupported value: "FTP": ${supported('HTTP', 'HTTPS')}`,
      `${live}.httpGet.httpHeaders: Invalid value: "a b": a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')`,
    ],
    [
      { [live]: { tcpSocket: { port: '80' } } },
      `${live}.tcpSocket.port: Invalid value: "80": must contain at least one letter (a-z)`,
    ],
    [
      { [live]: { grpc: { port: 0 } } },
      `${live}.grpc.port: Invalid value: 0: must be between 1 and 65535, inclusive`,
    ],
    [
      {
        [live]: {
          exec: { command: ['x'] },
          initialDelaySeconds: -1,
          successThreshold: 2,
          terminationGracePeriodSeconds: 0,
        },
      },
      `${live}.initialDelaySeconds: Invalid value: -1: must be greater than or equal to 0`,
      `${live}.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0`,
      `${live}.successThreshold: Invalid value: 2: must be 1`,
    ],
    [
      {
        [ready]: {
          exec: { command: ['x'] },
          successThreshold: 2,
          terminationGracePeriodSeconds: 5,
        },
      },
      `${ready}.terminationGracePeriodSeconds: Invalid value: 5: must not be set for readinessProbes`,
    ],
    [
      { [`${first}.lifecycle`]: { postStart: {}, preStop: { sleep: { seconds: 31 } } } },
      `${first}.lifecycle.postStart: Required value: must specify a handler type`,
      `${first}.lifecycle.preStop.sleep: Invalid value: 31: must be greater than 0 and less than terminationGracePeriodSeconds (30). Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep.`,
    ],
  ]);
});
