import { type Dialect, dns1035Label, type JsonObject } from '@wheelhouse/machinery';
import { ageColumn, column, nameColumn, textAt } from '../cells.ts';
import { defineKind, steppedDefaults } from '../define.ts';
import { defaultFeatures, type Features } from '../features/features.ts';
import type { Service } from '../gen/types/core/v1.ts';
import type { ColumnDef, ResourceDef, Stored, Strategy } from '../resource-def.ts';
import { sortedKeys } from '../rules/checks.ts';
import { ensure, fill, fillAbsent } from '../rules/fill.ts';
import { type Family, familyOf } from './service/cluster-ips.ts';
import { balancerAddresses, validateServiceStatus } from './service/load-balancer-status.ts';
import {
  asService,
  dropTypeDependent,
  isExternallyAccessible,
  isExternalName,
  needsClusterIp,
  noAddress,
  type ServiceSpec,
} from './service/spec.ts';
import { serviceWarnings, validateService, validateServiceUpdate } from './service/validation.ts';

/** Functions and settings that allocate the addresses and ports of Services. */
export interface ServiceOptions {
  /** Absent: nothing is allocated, as in a tool that only reads objects. */
  readonly allocate?: Strategy['allocate'];
  readonly features?: Features | undefined;
  /** Releases the addresses and ports of a removed Service, and deletes its Endpoints. */
  readonly afterRemoval?: Strategy['afterRemoval'];
  /** The address family of Services that request none; absent: IPv4. */
  readonly primaryFamily?: Family;
}

const columns: readonly ColumnDef[] = [
  nameColumn,
  column('Type', (object) => textAt(object, 'spec', 'type'), {
    description: 'Type of the service.',
  }),
  column('Cluster-IP', (object) => textAt(object, 'spec', 'clusterIP') || '<none>', {
    description: 'Address inside the cluster.',
  }),
  column('External-IP', externalAddress, { description: 'External addresses.' }),
  column('Port(s)', ports, { description: 'Ports, including node ports.' }),
  ageColumn,
  column('Selector', selector, { priority: 1, description: 'Selector of the pods.' }),
];

/** Service: a stable name and address for a changing set of pods. */
export function service(dialect: Dialect, options: ServiceOptions): ResourceDef {
  const { allocate, afterRemoval, primaryFamily = 'IPv4', features = defaultFeatures } = options;
  return defineKind<Service>({
    dialect,
    features,
    facts: 'core',
    kind: 'Service',
    scope: 'Namespaced',
    shortNames: ['svc'],
    categories: ['all'],
    versions: [
      {
        version: 'v1',
        ...steppedDefaults<Stored<Service>>((object) => fillSteps(object, features)),
        columns,
      },
    ],
    storage: {
      prefix: '/registry/services/specs/',
      fieldsOf: (object) => ({
        'spec.clusterIP': object.spec?.clusterIP ?? '',
        'spec.type': object.spec?.type ?? '',
      }),
      complete: (object) => completeService(object, primaryFamily),
    },
    strategy: {
      extraMetadataChecks: { '': ['change', 'whole'] },
      validateName: dns1035Label,
      hasStatus: true,
      ...(allocate === undefined ? {} : { allocate }),
      ...(afterRemoval === undefined ? {} : { afterRemoval }),
      validateCreate: (_, object) => validateService(asService(object), dialect),
      prepareForCreate: (_, object) => dropInternalTrafficPolicy(object),
      prepareForUpdate: (context, object, old) => {
        if (context.subresource === 'status') return;
        dropInternalTrafficPolicy(object);
        const { spec } = asService(object);
        dropTypeDependent(spec, asService(old).spec);
        if (spec.type !== 'LoadBalancer') object.status = { ...object.status, loadBalancer: {} };
      },
      validateUpdate: (context, object, old) =>
        context.subresource === 'status'
          ? validateServiceStatus(asService(object), features)
          : validateServiceUpdate(asService(object), asService(old), dialect),
      warnings: (object) => serviceWarnings(asService(object), dialect),
      allowCreateOnUpdate: true,
      deleteAnswers: 'object',
    },
    subresources: [
      {
        name: 'proxy',
        verbs: ['create', 'delete', 'get', 'patch', 'update'],
        kind: { group: '', version: 'v1', kind: 'ServiceProxyOptions' },
      },
      { name: 'status', verbs: ['get', 'patch', 'update'] },
    ],
    example: () => ({
      spec: { selector: { app: 'example' }, ports: [{ port: 80, targetPort: 8080 }] },
    }),
  });
}

/** Number of ports whose defaults one step fills. */
const portsPerStep = 500;

/** Fills the defaults in steps, because a Service may have many ports (TRUST-2). */
function* fillSteps(object: Stored<Service>, features: Features): Generator<void, void> {
  const { spec } = asService(object);
  const members: JsonObject = spec;
  fill(members, { sessionAffinity: 'None', type: 'ClusterIP' });
  if (spec.sessionAffinity === 'None') delete spec.sessionAffinityConfig;
  if (spec.sessionAffinity === 'ClientIP') {
    const config = ensure(ensure(members, 'sessionAffinityConfig'), 'clientIP');
    fill(config, { timeoutSeconds: 10800 });
  }
  for (const [index, port] of (spec.ports ?? []).entries()) {
    if (index % portsPerStep === portsPerStep - 1) yield;
    fill(port, { protocol: 'TCP' });
    const { targetPort = 0 } = port;
    if (targetPort === 0 || targetPort === '') port.targetPort = port.port ?? 0;
  }
  if (isExternallyAccessible(spec)) fill(members, { externalTrafficPolicy: 'Cluster' });
  if (needsClusterIp(spec)) fillAbsent(members, { internalTrafficPolicy: 'Cluster' });
  if (spec.type !== 'LoadBalancer') return;
  fill(members, { allocateLoadBalancerNodePorts: true });
  if (!features.enabled('LoadBalancerIPMode')) return;
  for (const ingress of object.status?.loadBalancer?.ingress ?? []) {
    if ((ingress.ip ?? '') !== '') fillAbsent(ingress, { ipMode: 'VIP' });
  }
}

function externalAddress(object: Stored<Service>): string {
  const ips = (object.spec?.externalIPs ?? []).map(String);
  switch (object.spec?.type ?? '') {
    case 'ExternalName':
      return object.spec?.externalName ?? '';
    case 'LoadBalancer': {
      const all = [...balancerAddresses(object.status?.loadBalancer?.ingress), ...ips];
      return all.length === 0 ? '<pending>' : all.join(',');
    }
    default:
      return ips.length === 0 ? '<none>' : ips.join(',');
  }
}

function ports(object: Stored<Service>): string {
  const shown = (object.spec?.ports ?? []).map((port) => {
    const node = port.nodePort ?? 0;
    const number = port.port ?? 0;
    const whole = node === 0 ? `${number}` : `${number}:${node}`;
    return `${whole}/${port.protocol ?? ''}`;
  });
  return shown.length === 0 ? '<none>' : shown.join(',');
}

function selector(object: Stored<Service>): string {
  const map = object.spec?.selector;
  const parts = sortedKeys(map).map((key) => `${key}=${textAt(map, key)}`);
  return parts.length === 0 ? '<none>' : parts.join(',');
}

/**
 * Completes a Service that a release before 1.20 stored, without `clusterIPs`, `ipFamilies`, and
 * `ipFamilyPolicy`. Drops the internal traffic policy that releases up to 1.25 stored for an
 * ExternalName.
 * @param primary the address family of Services that request none
 */
function completeService(object: Stored<Service>, primary: Family): void {
  const { spec } = asService(object);
  const { clusterIP = '', clusterIPs = [] } = spec;
  if (clusterIP !== '' && clusterIPs.length === 0) spec.clusterIPs = [clusterIP];
  if (needsClusterIp(spec) && (spec.ipFamilies ?? []).length === 0) fillFamilies(spec, primary);
  if (isExternalName(spec)) delete spec.internalTrafficPolicy;
}

function fillFamilies(spec: ServiceSpec, primary: Family): void {
  const { clusterIP, clusterIPs = [], selector = {} } = spec;
  if (clusterIP !== noAddress) {
    spec.ipFamilies = clusterIPs.map((ip) => (familyOf(ip) === 'IPv6' ? 'IPv6' : 'IPv4'));
    if (clusterIPs.length === 1) spec.ipFamilyPolicy = 'SingleStack';
    else if (clusterIPs.length === 2) spec.ipFamilyPolicy = 'RequireDualStack';
    if (clusterIPs.length === 0) delete spec.ipFamilies;
    return;
  }
  // The families of manually managed endpoints are unknown, so kube-apiserver assumes both.
  const isManual = Object.keys(selector).length === 0;
  const secondary = primary === 'IPv4' ? 'IPv6' : 'IPv4';
  spec.ipFamilies = isManual ? [primary, secondary] : [primary];
  spec.ipFamilyPolicy = isManual ? 'RequireDualStack' : 'SingleStack';
}

/** Drops the policy of an ExternalName, except an unsupported value, which validation rejects. */
function dropInternalTrafficPolicy(object: Stored<Service>): void {
  const { spec } = asService(object);
  const isNamed = spec.type === 'ExternalName';
  if (isNamed && isSupportedPolicy(spec.internalTrafficPolicy)) delete spec.internalTrafficPolicy;
}

const isSupportedPolicy = (policy: string | undefined) =>
  policy === 'Cluster' || policy === 'Local';
