import {
  appendAll,
  blockHas,
  type Dialect,
  dnsSubdomain,
  type FieldError,
  forbiddenField,
  invalid,
  invalidGo,
  notSupported,
  parseIpBlock,
  portName,
  required,
  ruleErrors,
  validateLabelSelector,
} from '@wheelhouse/machinery';
import { selectorText } from '../apps/workload.ts';
import { ageColumn, column, nameColumn } from '../cells.ts';
import { validateCidr } from '../core/addresses.ts';
import { defineKind, steppedDefaults } from '../define.ts';
import type {
  IPBlock,
  NetworkPolicy,
  NetworkPolicyPeer,
  NetworkPolicyPort,
  NetworkPolicySpec,
} from '../gen/types/networking/v1.ts';
import { validatePortNumber } from '../pod/fields.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { flatMapSteps, goList, reportedTwice } from '../rules/checks.ts';
import { ensure, fillAbsent, forEachSteps, objectAt, objectsAt } from '../rules/fill.ts';

/** NetworkPolicy: restricts the traffic that pods accept and send. */
export function networkPolicy(dialect: Dialect): ResourceDef {
  const podSelector = column(
    'Pod-Selector',
    (object) => selectorText(objectAt(object, 'spec', 'podSelector')),
    { description: 'Selector of the pods that the policy applies to.' },
  );
  return defineKind<NetworkPolicy>({
    dialect,
    facts: 'networking',
    kind: 'NetworkPolicy',
    scope: 'Namespaced',
    shortNames: ['netpol'],
    versions: [
      {
        version: 'v1',
        ...steppedDefaults(fillSteps),
        columns: [nameColumn, podSelector, ageColumn],
      },
    ],
    generation: true,
    strategy: {
      extraMetadataChecks: { '': ['whole', 'change'] },
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validateNetworkPolicy(object),
      *validateUpdate(_, object) {
        return reportedTwice(yield* validateNetworkPolicy(object));
      },
    },
    example: () => ({ spec: { podSelector: { matchLabels: { app: 'example' } } } }),
  });
}

/** Policy types default to ingress, and to egress as well if there are egress rules. */
function* fillSteps(object: Stored<NetworkPolicy>): Generator<void, void> {
  const spec = ensure(object, 'spec');
  for (const direction of ['ingress', 'egress'] as const) {
    yield* forEachSteps(spec[direction] ?? [], ({ ports }) =>
      forEachSteps(ports ?? [], (port) => fillAbsent(port, { protocol: 'TCP' })),
    );
  }
  if ((spec.policyTypes ?? []).length > 0) return;
  spec.policyTypes = (spec.egress ?? []).length > 0 ? ['Ingress', 'Egress'] : ['Ingress'];
}

/** Validates a NetworkPolicy except its metadata. */
function* validateNetworkPolicy(object: Stored<NetworkPolicy>): Generator<void, FieldError[]> {
  const spec = object.spec ?? {};
  return [
    ...validateSelector(spec, 'spec', 'podSelector'),
    ...(yield* validateRules(spec, { direction: 'ingress', peers: 'from' })),
    ...(yield* validateRules(spec, { direction: 'egress', peers: 'to' })),
    ...validateTypes(spec),
  ];
}

function validateSelector(
  holder: Stored<NetworkPolicySpec | NetworkPolicyPeer>,
  path: string,
  name: string,
): FieldError[] {
  const selector = objectAt(holder, name);
  return validateLabelSelector(selector, `${path}.${name}`);
}

function validateRules(
  spec: Stored<NetworkPolicySpec>,
  names: { readonly direction: string; readonly peers: string },
): Generator<void, FieldError[]> {
  return flatMapSteps(objectsAt(spec, names.direction), function* (rule, index) {
    const path = `spec.${names.direction}[${index}]`;
    return [
      ...(yield* flatMapSteps(objectsAt(rule, 'ports'), (port, at) =>
        validatePort(port, `${path}.ports[${at}]`),
      )),
      ...(yield* flatMapSteps(objectsAt(rule, names.peers), (peer, at) =>
        validatePeer(peer, `${path}.${names.peers}[${at}]`),
      )),
    ];
  });
}

const protocols = ['TCP', 'UDP', 'SCTP'];

function validatePort(port: Stored<NetworkPolicyPort>, path: string): FieldError[] {
  const protocol = port.protocol;
  const isSupported = protocol === undefined || protocols.includes(String(protocol));
  const errors = isSupported ? [] : [notSupported(`${path}.protocol`, protocol, protocols)];
  return [...errors, ...validateRange(port, path)];
}

function validateRange(port: Stored<NetworkPolicyPort>, path: string): FieldError[] {
  const first = port.port;
  const last = port.endPort;
  const end = port.endPort ?? 0;
  const refuse = (detail: string) =>
    last === undefined ? [] : [invalid(`${path}.endPort`, end, detail)];
  if (first === undefined) return refuse('may not be specified when `port` is not specified');
  if (typeof first === 'string') {
    const named = refuse('may not be specified when `port` is non-numeric');
    return [...named, ...ruleErrors(`${path}.port`, first, portName)];
  }
  const start = first;
  return [
    ...validatePortNumber(`${path}.port`, start),
    // kube-apiserver's error shows the port instead of the end.
    ...(last !== undefined && end < start
      ? [invalid(`${path}.endPort`, start, 'must be greater than or equal to `port`')]
      : []),
    ...(last === undefined ? [] : validatePortNumber(`${path}.endPort`, end)),
  ];
}

function* validatePeer(
  peer: Stored<NetworkPolicyPeer>,
  path: string,
): Generator<void, FieldError[]> {
  const block = peer.ipBlock;
  const selectors = (['podSelector', 'namespaceSelector'] as const).filter(
    (name) => peer[name] !== undefined,
  );
  const errors = selectors.flatMap((name) => validateSelector(peer, path, name));
  if (block !== undefined) appendAll(errors, yield* validateBlock(block, `${path}.ipBlock`));
  if (block === undefined && selectors.length === 0) {
    errors.push(required(path, 'must specify a peer'));
  }
  if (block !== undefined && selectors.length > 0) {
    errors.push(forbiddenField(path, 'may not specify both ipBlock and another peer'));
  }
  return errors;
}

function* validateBlock(block: Stored<IPBlock>, path: string): Generator<void, FieldError[]> {
  const cidr = block.cidr ?? '';
  if (cidr === '') return [required(`${path}.cidr`)];
  const whole = parseIpBlock(cidr);
  if (whole === undefined) return validateCidr(`${path}.cidr`, cidr);
  return yield* flatMapSteps(block.except ?? [], (value, index) => {
    const field = `${path}.except[${index}]`;
    const text = String(value);
    const part = parseIpBlock(text);
    if (part === undefined) return validateCidr(field, text);
    // Like kube-apiserver, compares the lengths as written, also those of IPv4-mapped blocks.
    const isWithin = blockHas(whole, part.base) && part.writtenBits > whole.writtenBits;
    return isWithin ? [] : [invalid(field, text, 'must be a strict subset of `cidr`')];
  });
}

const policyTypes = ['Ingress', 'Egress'];

function validateTypes(spec: Stored<NetworkPolicySpec>): FieldError[] {
  const types = (spec.policyTypes ?? []).map(String);
  if (types.length > policyTypes.length) {
    const detail = 'may not specify more than two policyTypes';
    return [invalidGo('spec.policyTypes', () => goList('networking.PolicyType', types), detail)];
  }
  return types.flatMap((type, index) =>
    policyTypes.includes(type)
      ? []
      : [notSupported(`spec.policyTypes[${index}]`, type, policyTypes)],
  );
}
