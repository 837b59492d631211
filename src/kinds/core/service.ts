import type { JsonObject } from '../../base/json.ts';
import type { ColumnDef, ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { duplicate, type FieldError, invalid, required } from '../../meta/field-error.ts';
import { breaks, dns1035Label, dnsLabel } from '../../meta/names.ts';
import { ageColumn, column, listAt, nameColumn, numberAt, textAt } from '../cells.ts';
import { sortedKeys } from '../checks.ts';
import { defineKind } from '../define.ts';
import { ensure, fill, objectAt, objectsAt } from '../fill.ts';
import { validateLabels } from '../pod/template.ts';
import { oneOf, portNumber } from '../pod/validate.ts';

const types = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'];

function fillDefaults(object: JsonObject): void {
  const spec = ensure(object, 'spec');
  fill(spec, { sessionAffinity: 'None', type: 'ClusterIP' });
  if (spec['sessionAffinity'] === 'None') delete spec['sessionAffinityConfig'];
  else fill(ensure(ensure(spec, 'sessionAffinityConfig'), 'clientIP'), { timeoutSeconds: 10800 });
  for (const port of objectsAt(spec, 'ports')) {
    fill(port, { protocol: 'TCP' });
    const target = port['targetPort'];
    if (target === undefined || target === null || target === 0 || target === '') {
      port['targetPort'] = port['port'] ?? 0;
    }
  }
  const type = spec['type'];
  if (type === 'NodePort' || type === 'LoadBalancer')
    fill(spec, { externalTrafficPolicy: 'Cluster' });
  if (type !== 'ExternalName') fill(spec, { internalTrafficPolicy: 'Cluster' });
  if (type === 'LoadBalancer') fill(spec, { allocateLoadBalancerNodePorts: true });
}

function validatePorts(spec: JsonObject): FieldError[] {
  const ports = objectsAt(spec, 'ports');
  const names = new Set<string>();
  const used = new Set<string>();
  return ports.flatMap((port, index) => {
    const path = `spec.ports[${index}]`;
    const name = textAt(port, 'name');
    const errors: FieldError[] = [];
    if (name === '') {
      if (ports.length > 1) errors.push(required(`${path}.name`));
    } else {
      errors.push(...breaks(`${path}.name`, name, dnsLabel));
      if (names.has(name)) errors.push(duplicate(`${path}.name`, name));
    }
    names.add(name);
    const number = numberAt(port, 'port');
    errors.push(...portNumber(`${path}.port`, number));
    errors.push(...oneOf(port, `${path}.protocol`, ['SCTP', 'TCP', 'UDP']));
    const identity = `${textAt(port, 'protocol')}/${number}`;
    if (used.has(identity)) {
      errors.push(duplicate(path, { protocol: textAt(port, 'protocol'), port: number }));
    }
    used.add(identity);
    return errors;
  });
}

function validate(object: JsonObject): FieldError[] {
  const spec = ensure(object, 'spec');
  const type = textAt(spec, 'type');
  const headless = textAt(spec, 'clusterIP') === 'None';
  const errors: FieldError[] = [];
  if (listAt(spec, 'ports').length === 0 && type !== 'ExternalName' && !headless) {
    errors.push(required('spec.ports'));
  }
  if (type === 'LoadBalancer' && headless) {
    const detail = "may not be set to 'None' for LoadBalancer services";
    errors.push(invalid('spec.clusterIPs[0]', 'None', detail));
  }
  if (type === 'ExternalName' && textAt(spec, 'externalName') === '') {
    errors.push(required('spec.externalName'));
  }
  return [
    ...errors,
    ...oneOf(spec, 'spec.type', types),
    ...validatePorts(spec),
    ...validateLabels(objectAt(spec, 'selector'), 'spec.selector'),
    ...oneOf(spec, 'spec.sessionAffinity', ['ClientIP', 'None']),
  ];
}

function validateUpdate(object: JsonObject, old: JsonObject): FieldError[] {
  const errors = validate(object);
  const before = textAt(old, 'spec', 'clusterIP');
  const now = textAt(object, 'spec', 'clusterIP');
  const external = [object, old].some((one) => textAt(one, 'spec', 'type') === 'ExternalName');
  if (before !== '' && now !== before && !external) {
    errors.push(invalid('spec.clusterIPs[0]', now, 'may not change once set'));
  }
  return errors;
}

/** What the server chose stays when an update leaves it out. */
function keepAllocated(object: JsonObject, old: JsonObject): void {
  const [spec, before] = [ensure(object, 'spec'), ensure(old, 'spec')];
  if (spec['type'] === 'ExternalName' || before['type'] === 'ExternalName') return;
  for (const name of ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy']) {
    const value = before[name];
    if (value !== undefined) fill(spec, { [name]: value });
  }
}

function ports(object: JsonObject): string {
  const shown = objectsAt(object, 'spec', 'ports').map((port) => {
    const node = numberAt(port, 'nodePort');
    const number = numberAt(port, 'port');
    const whole = node === 0 ? `${number}` : `${number}:${node}`;
    return `${whole}/${textAt(port, 'protocol')}`;
  });
  return shown.length === 0 ? '<none>' : shown.join(',');
}

function externalAddress(object: JsonObject): string {
  const ips = listAt(object, 'spec', 'externalIPs').map(String);
  switch (textAt(object, 'spec', 'type')) {
    case 'ExternalName':
      return textAt(object, 'spec', 'externalName');
    case 'LoadBalancer': {
      const given = objectsAt(object, 'status', 'loadBalancer', 'ingress').map(
        (one) => textAt(one, 'ip') || textAt(one, 'hostname'),
      );
      const all = [...given, ...ips];
      return all.length === 0 ? '<pending>' : all.join(',');
    }
    default:
      return ips.length === 0 ? '<none>' : ips.join(',');
  }
}

function selector(object: JsonObject): string {
  const map = objectAt(object, 'spec', 'selector');
  const parts = sortedKeys(map).map((key) => `${key}=${textAt(map, key)}`);
  return parts.length === 0 ? '<none>' : parts.join(',');
}

const columns: readonly ColumnDef[] = [
  nameColumn,
  column('Type', (object) => textAt(object, 'spec', 'type'), { description: 'How it is reached.' }),
  column('Cluster-IP', (object) => textAt(object, 'spec', 'clusterIP') || '<none>', {
    description: 'Address inside the cluster.',
  }),
  column('External-IP', externalAddress, { description: 'Addresses from outside.' }),
  column('Port(s)', ports, { description: 'Ports, with those on the nodes.' }),
  ageColumn,
  column('Selector', selector, { priority: 1, description: 'Selector of the pods.' }),
];

/** Service: a name and address for a changing set of pods. */
export function service(dialect: Dialect): ResourceDef {
  return defineKind({
    dialect,
    facts: 'core',
    kind: 'Service',
    resource: 'services',
    scope: 'Namespaced',
    shortNames: ['svc'],
    categories: ['all'],
    versions: [{ version: 'v1', defaults: fillDefaults, columns }],
    storage: {
      prefix: '/registry/services/specs/',
      fieldsOf: (object) => ({
        'spec.clusterIP': textAt(object, 'spec', 'clusterIP'),
        'spec.type': textAt(object, 'spec', 'type'),
      }),
    },
    strategy: {
      validateName: dns1035Label,
      hasStatus: true,
      validateCreate: (_, object) => validate(object),
      prepareForUpdate: (context, object, old) => {
        if (context.subresource === '') keepAllocated(object, old);
      },
      validateUpdate: (context, object, old) =>
        context.subresource === 'status' ? [] : validateUpdate(object, old),
      deleteAnswers: 'object',
    },
    subresources: [
      {
        name: 'proxy',
        verbs: ['create', 'get', 'patch', 'update'],
        kind: { group: '', version: 'v1', kind: 'ServiceProxyOptions' },
      },
      { name: 'status', verbs: ['get', 'patch', 'update'] },
    ],
    example: () => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'example', namespace: 'default' },
      spec: { selector: { app: 'example' }, ports: [{ port: 80, targetPort: 8080 }] },
    }),
  });
}
