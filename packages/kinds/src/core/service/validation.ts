import {
  appendAll,
  type Dialect,
  dnsLabel,
  dnsSubdomain,
  duplicate,
  type FieldError,
  forbiddenField,
  formatStrictly,
  inRange,
  invalid,
  type JsonObject,
  joined,
  notSupported,
  parseIpAddress,
  parseIpBlock,
  portName,
  qualifiedName,
  required,
  ruleErrors,
  strictAddressProblem,
} from '@wheelhouse/machinery';
import { labelErrorSteps, validatePortNumber } from '../../pod/fields.ts';
import { flatMapSteps, keyed, partsOf } from '../../rules/checks.ts';
import { validateCidr, validateIp, validateNonSpecialIp } from '../addresses.ts';
import { validateClusterIps, validateClusterIpsUpdate } from './cluster-ips.ts';
import {
  isExternallyAccessible,
  isHeadless,
  needsClusterIp,
  needsHealthCheck,
  noAddress,
  type Service,
  type ServicePort,
  type ServiceSpec,
} from './spec.ts';

const types = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'];

/** Validates a Service except its metadata, in steps. */
export function* validateService(
  service: Service,
  dialect: Dialect,
): Generator<void, FieldError[]> {
  const { spec } = service;
  return joined<FieldError>(
    validateTopologyAnnotations(service, dialect),
    yield* validateType(spec),
    yield* flatMapSteps(spec.ports ?? [], validatePort(spec)),
    yield* labelErrorSteps(spec.selector as JsonObject | undefined, 'spec.selector'),
    validateAffinity(spec),
    yield* validateClusterIps(spec),
    yield* flatMapSteps(spec.externalIPs ?? [], validateExternalIp),
    validateEnum(spec.type, 'spec.type', types),
    yield* validateNodePorts(spec),
    yield* validateDuplicatePorts(spec),
    yield* validateSourceRanges(service, dialect),
    validateLoadBalancer(spec),
    validateTraffic(spec),
  );
}

function validateTopologyAnnotations(service: Service, dialect: Dialect): FieldError[] {
  const annotations = service.metadata.annotations ?? {};
  const older = dialect.label('topology-aware-hints', 'service');
  const newer = dialect.label('topology-mode', 'service');
  if (!Object.hasOwn(annotations, older) || !Object.hasOwn(annotations, newer)) return [];
  if (annotations[older] === annotations[newer]) return [];
  const detail = `must match annotations[${older}] when both are specified`;
  return [invalid(keyed('metadata.annotations', newer), annotations[newer], detail)];
}

function* validateType(spec: ServiceSpec): Generator<void, FieldError[]> {
  const { type, ports = [] } = spec;
  const errors: FieldError[] = [];
  if (ports.length === 0 && !isHeadless(spec) && type !== 'ExternalName') {
    errors.push(required('spec.ports'));
  }
  if (type === 'LoadBalancer') appendAll(errors, yield* flatMapSteps(ports, exposesNodeAgent));
  if ((type === 'LoadBalancer' || type === 'NodePort') && isHeadless(spec)) {
    const detail = `may not be set to 'None' for ${type} services`;
    errors.push(invalid('spec.clusterIPs[0]', noAddress, detail));
  }
  return type === 'ExternalName' ? [...errors, ...validateExternalName(spec)] : errors;
}

const nodeAgentPort = 10250;

/** Rejects the kubelet's port: some clouds forward it from a load balancer to the nodes. */
function exposesNodeAgent({ port }: ServicePort, index: number): FieldError[] {
  if (port !== nodeAgentPort) return [];
  const detail = `may not expose port ${port} externally since it is used by kubelet`;
  return [invalid(`spec.ports[${index}]`, port, detail)];
}

function validateExternalName(spec: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  const refuse = (name: string) =>
    errors.push(forbiddenField(`spec.${name}`, 'may not be set for ExternalName services'));
  if ((spec.clusterIPs ?? []).length > 0) refuse('clusterIPs');
  if ((spec.ipFamilies ?? []).length > 0) refuse('ipFamilies');
  if (spec.ipFamilyPolicy !== undefined) refuse('ipFamilyPolicy');
  const name = (spec.externalName ?? '').replace(/\.$/, '');
  if (name === '') errors.push(required('spec.externalName'));
  else appendAll(errors, ruleErrors('spec.externalName', name, dnsSubdomain));
  return errors;
}

const protocols = ['SCTP', 'TCP', 'UDP'];

/** Returns a function that validates each port, including that its name is unique. */
function validatePort(spec: ServiceSpec) {
  const names = new Set<string>();
  const mustHaveName = (spec.ports ?? []).length > 1;
  return (port: ServicePort, index: number): FieldError[] => {
    const errors: FieldError[] = [];
    const path = `spec.ports[${index}]`;
    const { name = '' } = port;
    if (name !== '') {
      appendAll(errors, ruleErrors(`${path}.name`, name, dnsLabel));
      if (names.has(name)) errors.push(duplicate(`${path}.name`, name));
      names.add(name);
    } else if (mustHaveName) errors.push(required(`${path}.name`));
    appendAll(errors, validatePortNumber(`${path}.port`, port.port ?? 0));
    appendAll(errors, validateEnum(port.protocol, `${path}.protocol`, protocols));
    appendAll(errors, validatePortOrName(`${path}.targetPort`, port.targetPort ?? 0));
    if (port.appProtocol !== undefined) {
      appendAll(errors, ruleErrors(`${path}.appProtocol`, port.appProtocol, qualifiedName));
    }
    return errors;
  };
}

function validateEnum(
  value: string | undefined,
  field: string,
  allowed: readonly string[],
): FieldError[] {
  const text = value ?? '';
  if (text === '') return [required(field)];
  return allowed.includes(text) ? [] : [notSupported(field, value, allowed)];
}

/** Validates a number within 1 to 65535, or the name of a container's port. */
function validatePortOrName(field: string, port: number | string): FieldError[] {
  if (typeof port === 'string') return ruleErrors(field, port, portName);
  return inRange(port, 1, 65535).map((message) => invalid(field, port, message));
}

const clientIpSecondsMax = 86400;

function validateAffinity(spec: ServiceSpec): FieldError[] {
  const { sessionAffinity, sessionAffinityConfig: config } = spec;
  const errors = validateEnum(sessionAffinity, 'spec.sessionAffinity', ['ClientIP', 'None']);
  const field = 'spec.sessionAffinityConfig';
  if (sessionAffinity === 'None' && config !== undefined) {
    errors.push(forbiddenField(field, 'must not be set when session affinity is None'));
  }
  if (sessionAffinity !== 'ClientIP') return errors;
  const needed = `when session affinity type is ClientIP`;
  if (config === undefined) return [...errors, required(field, needed)];
  if (config.clientIP === undefined) return [...errors, required(`${field}.clientIP`, needed)];
  const seconds = config.clientIP.timeoutSeconds;
  const at = `${field}.clientIP.timeoutSeconds`;
  if (seconds === undefined) return [...errors, required(at, needed)];
  if (seconds > 0 && seconds <= clientIpSecondsMax) return errors;
  const detail = `must be greater than 0 and less than ${clientIpSecondsMax}`;
  return [...errors, invalid(at, seconds, detail)];
}

function validateExternalIp(ip: string, index: number): FieldError[] {
  const field = `spec.externalIPs[${index}]`;
  const errors = validateIp(field, ip);
  return errors.length > 0 ? errors : validateNonSpecialIp(field, ip);
}

function* validateNodePorts(spec: ServiceSpec): Generator<void, FieldError[]> {
  const { ports = [], type } = spec;
  const nodePorts = yield* flatMapSteps(ports, (port, index) =>
    (port.nodePort ?? 0) === 0 ? [] : [{ ...port, field: `spec.ports[${index}].nodePort` }],
  );
  const seen = new Set<string>();
  const refused =
    type === 'ClusterIP'
      ? nodePorts.map(({ field }) =>
          forbiddenField(field, "may not be used when `type` is 'ClusterIP'"),
        )
      : [];
  const repeated = yield* flatMapSteps(nodePorts, ({ protocol, nodePort, field }) => {
    const key = `${protocol}/${nodePort}`;
    const isRepeated = seen.has(key);
    seen.add(key);
    return isRepeated ? [duplicate(field, nodePort)] : [];
  });
  return [...refused, ...repeated];
}

function validateDuplicatePorts({ ports = [] }: ServiceSpec): Generator<void, FieldError[]> {
  const seen = new Set<string>();
  return flatMapSteps(ports, ({ protocol = '', port = 0 }, index) => {
    const key = `${protocol}/${port}`;
    const isRepeated = seen.has(key);
    seen.add(key);
    return isRepeated ? [duplicatePort(`spec.ports[${index}]`, { protocol, port })] : [];
  });
}

/** The error for a repeated port, with the key by which kube-apiserver compares ports. */
function duplicatePort(
  field: string,
  { protocol, port }: { protocol: string; port: number },
): FieldError {
  const shown =
    `core.ServicePort{Name:"", Protocol:${JSON.stringify(protocol)}, ` +
    `AppProtocol:(*string)(nil), Port:${port}, ` +
    'TargetPort:intstr.IntOrString{Type:0, IntVal:0, StrVal:""}, NodePort:0}';
  return { type: 'FieldValueDuplicate', field, message: `Duplicate value: ${shown}` };
}

const loadBalancerOnly = "may only be used when `type` is 'LoadBalancer'";

/** Validates the field, whose name kube-apiserver capitalizes, or the older annotation. */
function* validateSourceRanges(
  { spec, metadata }: Service,
  dialect: Dialect,
): Generator<void, FieldError[]> {
  const { loadBalancerSourceRanges: ranges = [], type } = spec;
  const only = (field: string) =>
    type === 'LoadBalancer' ? [] : [forbiddenField(field, loadBalancerOnly)];
  if (ranges.length > 0) {
    const field = 'spec.LoadBalancerSourceRanges';
    const wrong = yield* flatMapSteps(ranges, (range, index) =>
      validateCidr(`${field}[${index}]`, range.trim()),
    );
    return [...only(field), ...wrong];
  }
  const annotation = dialect.label('load-balancer-source-ranges', 'service.beta');
  const annotations = metadata.annotations ?? {};
  if (!Object.hasOwn(annotations, annotation)) return [];
  const field = keyed('metadata.annotations', annotation);
  const text = (annotations[annotation] ?? '').trim();
  const parts = text === '' ? [] : partsOf(text, ',');
  const wrong = yield* flatMapSteps(parts, (part) => validateCidr(field, part.trim()));
  return [...only(field), ...wrong];
}

function validateLoadBalancer(spec: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  const isBalanced = spec.type === 'LoadBalancer';
  const isSet = spec.allocateLoadBalancerNodePorts !== undefined;
  if (isSet && !isBalanced) {
    errors.push(forbiddenField('spec.allocateLoadBalancerNodePorts', loadBalancerOnly));
  }
  if (isBalanced && !isSet) errors.push(required('allocateLoadBalancerNodePorts'));
  return [...errors, ...validateLoadBalancerClass(spec)];
}

function validateLoadBalancerClass({ type, loadBalancerClass }: ServiceSpec): FieldError[] {
  if (loadBalancerClass === undefined) return [];
  const field = 'spec.loadBalancerClass';
  if (type !== 'LoadBalancer') return [forbiddenField(field, loadBalancerOnly)];
  return ruleErrors(field, loadBalancerClass, qualifiedName);
}

function validateTraffic(spec: ServiceSpec): FieldError[] {
  return [
    ...validateExternalTraffic(spec),
    ...validateHealthCheck(spec),
    ...validateInternalTraffic(spec),
    ...validateDistribution(spec),
  ];
}

const trafficPolicies = ['Cluster', 'Local'];

function validateExternalTraffic(spec: ServiceSpec): FieldError[] {
  const field = 'spec.externalTrafficPolicy';
  const { externalTrafficPolicy: policy = '' } = spec;
  if (isExternallyAccessible(spec)) return validateEnum(policy, field, trafficPolicies);
  if (policy === '') return [];
  return [invalid(field, policy, 'may only be set for externally-accessible services')];
}

function validateHealthCheck(spec: ServiceSpec): FieldError[] {
  const field = 'spec.healthCheckNodePort';
  const { healthCheckNodePort: port = 0 } = spec;
  if (needsHealthCheck(spec))
    return port === 0 ? [required(field)] : validatePortNumber(field, port);
  if (port === 0) return [];
  const detail =
    "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
  return [invalid(field, port, detail)];
}

function validateInternalTraffic(spec: ServiceSpec): FieldError[] {
  const field = 'spec.internalTrafficPolicy';
  const { internalTrafficPolicy: policy } = spec;
  if (policy === undefined) return needsClusterIp(spec) ? [required(field)] : [];
  return trafficPolicies.includes(policy) ? [] : [notSupported(field, policy, trafficPolicies)];
}

function validateDistribution({ trafficDistribution }: ServiceSpec): FieldError[] {
  if (trafficDistribution === undefined || trafficDistribution === 'PreferClose') return [];
  return [notSupported('spec.trafficDistribution', trafficDistribution, ['PreferClose'])];
}

/** Validates an updated Service: first the changes, then the whole. */
export function* validateServiceUpdate(
  service: Service,
  old: Service,
  dialect: Dialect,
): Generator<void, FieldError[]> {
  const { spec } = service;
  const before = old.spec;
  const errors = validateClusterIpsUpdate(spec, before);
  if (before.type === 'LoadBalancer' && spec.type === 'LoadBalancer') {
    if (before.loadBalancerClass !== spec.loadBalancerClass) {
      const field = 'spec.loadBalancerClass';
      errors.push(invalid(field, spec.loadBalancerClass, 'may not change once set'));
    }
  }
  appendAll(errors, validateLoadBalancerClass(spec));
  if (needsHealthCheck(before) && needsHealthCheck(spec)) {
    if (before.healthCheckNodePort !== spec.healthCheckNodePort) {
      errors.push(forbiddenField('spec.healthCheckNodePort', 'field is immutable'));
    }
  }
  return joined(errors, yield* validateService(service, dialect));
}

/** Returns warnings about deprecated or ignored members and ambiguous addresses. */
export function* serviceWarnings(
  { spec, metadata }: Service,
  dialect: Dialect,
): Generator<void, readonly string[]> {
  const older = dialect.label('topology-aware-hints', 'service');
  const newer = dialect.label('topology-mode', 'service');
  const ips = (spec.clusterIPs ?? []).filter((ip) => ip !== noAddress);
  const external = spec.externalIPs ?? [];
  return joined<string>(
    Object.hasOwn(metadata.annotations ?? {}, older)
      ? [`annotation ${older} is deprecated, please use ${newer} instead`]
      : [],
    yield* flatMapSteps(ips, (ip, index) => addressWarnings(`spec.clusterIPs[${index}]`, ip)),
    yield* flatMapSteps(external, (ip, index) => addressWarnings(`spec.externalIPs[${index}]`, ip)),
    (spec.loadBalancerIP ?? '') === ''
      ? []
      : addressWarnings('spec.loadBalancerIP', spec.loadBalancerIP ?? ''),
    yield* flatMapSteps(spec.loadBalancerSourceRanges ?? [], (range, index) =>
      rangeWarnings(`spec.loadBalancerSourceRanges[${index}]`, range),
    ),
    spec.type === 'ExternalName' && external.length > 0
      ? ['spec.externalIPs is ignored when spec.type is "ExternalName"']
      : [],
    spec.type !== 'ExternalName' && (spec.externalName ?? '') !== ''
      ? ['spec.externalName is ignored when spec.type is not "ExternalName"']
      : [],
  );
}

const willBeInvalid = 'was accepted, but will be invalid in a future Kubernetes release';
const applyLoops = 'which may cause controller apply-loops';

/** Warns about an address that programs may interpret differently or that is not canonical. */
function addressWarnings(field: string, text: string): readonly string[] {
  const why = strictAddressProblem(text);
  if (why !== undefined) return [`${field}: IP address ${willBeInvalid}: ${why}`];
  const address = parseIpAddress(text);
  if (address === undefined || !text.includes(':')) return [];
  const canonical = formatStrictly(text, address);
  if (canonical === text) return [];
  const how = `is not in RFC 5952 canonical format (${JSON.stringify(canonical)})`;
  const text6 = JSON.stringify(text);
  return [`${field}: IPv6 address ${text6} ${how}, ${applyLoops}`];
}

/** Warns about a CIDR block that programs may interpret differently or that is not canonical. */
function rangeWarnings(field: string, text: string): readonly string[] {
  const range = parseIpBlock(text.trim());
  if (range === undefined) return [];
  const [address = '', bits = ''] = text.split('/');
  const why = strictAddressProblem(address) ?? bitsProblem(bits);
  if (why !== undefined) {
    const parseError = `netip.ParsePrefix(${JSON.stringify(text)}): ${why}`;
    return [`${field}: IP prefix ${willBeInvalid}: ${parseError}`];
  }
  const canonical = `${formatStrictly(address, range.address)}/${bits}`;
  if (!address.includes(':') || canonical === text) return [];
  const how = `is not in RFC 5952 canonical format (${JSON.stringify(canonical)})`;
  return [`${field}: IPv6 prefix ${JSON.stringify(text)} ${how}, ${applyLoops}`];
}

const bitsProblem = (bits: string) =>
  /^0\d|\s/.test(bits) ? `bad bits after slash: ${JSON.stringify(bits)}` : undefined;
