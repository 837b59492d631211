import {
  isObject,
  type JsonObject,
  parseApiVersion,
  problemText,
  setMember,
} from '@wheelhouse/machinery';
import { overrideFlags, withOverrides } from '../apply/local-patch.ts';
import type { Command } from '../command.ts';
import { createObject, generatorFlags, newMetadata } from '../create-object.ts';
import { reportFailures, visitEach } from '../errors.ts';
import { CliError } from '../io.ts';
import { hasManifests, manifestFlags } from '../manifests.ts';
import { listAt, nameOf, objectAt, textAt, withGroup } from '../objects.ts';
import { checkSelected, fetchTarget, selectTargets } from '../selection.ts';
import type { Session } from '../session.ts';

/** Creates a Service for the Pods that an object selects; reports `exposed`. */
export const exposeCommand: Command = {
  name: 'expose',
  completes: 'objects',
  summary:
    'Take a replication controller, service, deployment or pod and expose it as a new service',
  usage: '(-f FILENAME | TYPE NAME) [--port=PORT] [--target-port=PORT] [--name=NAME] [--type=TYPE]',
  flags: [
    ...manifestFlags,
    ...generatorFlags,
    ...overrideFlags,
    { name: 'name', type: 'text', help: "Name of the service; the object's by default" },
    { name: 'port', type: 'text', help: "Port of the service; the object's by default" },
    { name: 'target-port', type: 'text', help: 'Number or name of the container port' },
    { name: 'protocol', type: 'text', help: "TCP, UDP, or SCTP; the object's by default" },
    { name: 'type', type: 'text', help: 'ClusterIP (default), NodePort, LoadBalancer, …' },
    {
      name: 'cluster-ip',
      type: 'text',
      help: 'Cluster IP of the service; None for a headless service',
    },
    { name: 'external-ip', type: 'text', help: 'An external address of the service' },
    { name: 'load-balancer-ip', type: 'text', help: 'Address for the load balancer' },
    { name: 'session-affinity', type: 'text', help: 'None or ClientIP' },
    {
      name: 'selector',
      type: 'text',
      help: "Labels that select the Pods; the object's by default",
    },
    {
      name: 'labels',
      short: 'l',
      type: 'text',
      help: "Labels of the service; the object's by default",
    },
  ],
  async run(session, args) {
    const failures: unknown[] = [];
    const objects = await exposedObjects(session, args, failures);
    await visitEach(
      session.io,
      objects,
      async (object) => {
        const service = await withOverrides(session, serviceOf(session, object));
        await createObject(session, service, { manager: 'svcctl-expose', verb: 'exposed' });
      },
      failures,
    );
    return reportFailures(session.io, failures);
  },
};

/** Reads the named objects from the server; those of files need not exist there. */
async function exposedObjects(
  session: Session,
  args: readonly string[],
  failures: unknown[],
): Promise<JsonObject[]> {
  // Here `--selector` sets the selector of the new Service.
  const targets = await selectTargets(session, args, { selectedBy: 'names' });
  checkSelected(session, targets, 'names');
  if (hasManifests(session))
    return targets.flatMap(({ object }) => (object === undefined ? [] : [object]));
  const objects: JsonObject[] = [];
  await visitEach(
    session.io,
    targets,
    async (target) => {
      objects.push(...(await fetchTarget(session, target)));
    },
    failures,
  );
  return objects;
}

/** Maximum length of a service name. */
const nameLengthMax = 63;

function serviceOf(session: Session, object: JsonObject): JsonObject {
  const { flags } = session;
  const kind = kindOf(object);
  const selector = parseLabels(flags.text('selector') ?? '') ?? selectorOf(object, kind);
  const labels = parseLabels(flags.text('labels') ?? '') ?? objectAt(object, 'metadata', 'labels');
  const ports = portsOf(session, object, kind);
  const [type = '', clusterIP = '', externalIP = '', affinity = '', balancer = ''] = [
    'type',
    'cluster-ip',
    'external-ip',
    'session-affinity',
    'load-balancer-ip',
  ].map((flag) => flags.text(flag));
  if (!['', 'None', 'ClientIP'].includes(affinity)) {
    throw new CliError(`unknown session affinity: ${affinity}`);
  }
  const name = flags.text('name') || nameOf(object).slice(0, nameLengthMax);
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      ...(Object.keys(labels).length === 0 ? {} : { labels }),
      ...newMetadata(session, name),
    },
    spec: {
      ...(clusterIP === '' ? {} : { clusterIP }),
      ...(externalIP === '' ? {} : { externalIPs: [externalIP] }),
      ...(type === 'LoadBalancer' && balancer !== '' ? { loadBalancerIP: balancer } : {}),
      ...(ports.length === 0 ? {} : { ports }),
      selector,
      ...(affinity === '' ? {} : { sessionAffinity: affinity }),
      ...(type === '' ? {} : { type }),
    },
  };
}

type Kind = 'Deployment' | 'Pod' | 'ReplicaSet' | 'ReplicationController' | 'Service';

/** The kind of an object. Throws CliError for a kind that cannot be exposed. */
function kindOf(object: JsonObject): Kind {
  const kind = textAt(object, 'kind');
  const group = parseApiVersion(textAt(object, 'apiVersion'))?.group ?? '';
  if (group === 'apps' && (kind === 'Deployment' || kind === 'ReplicaSet')) return kind;
  const isCore = kind === 'Pod' || kind === 'ReplicationController' || kind === 'Service';
  if (group === '' && isCore) return kind;
  throw new CliError(`cannot expose a ${withGroup(kind, group)}`);
}

/** Parses `KEY=VALUE,…`; undefined if empty. Throws CliError. */
function parseLabels(text: string): JsonObject | undefined {
  if (text === '') return undefined;
  const labels: JsonObject = {};
  for (const pair of text.split(',')) {
    const [key = '', value, ...more] = pair.split('=');
    if (value === undefined || more.length > 0) {
      throw new CliError(`unexpected label spec: ${pair}`);
    }
    if (key === '') throw new CliError('unexpected empty label key');
    setMember(labels, key, value);
  }
  return labels;
}

function selectorOf(object: JsonObject, kind: Kind): JsonObject {
  const fail = (why: string): never => {
    throw new CliError(`couldn't retrieve selectors via --selector flag or introspection: ${why}`);
  };
  if (kind === 'Pod') {
    const labels = objectAt(object, 'metadata', 'labels');
    if (Object.keys(labels).length === 0) fail('the pod has no labels and cannot be exposed');
    return labels;
  }
  const selector = objectAt(object, 'spec', 'selector');
  if (kind === 'Service' && !isObject(objectAt(object, 'spec')['selector'])) {
    fail('the service has no pod selector set');
  }
  if (kind === 'Service' || kind === 'ReplicationController') return selector;
  const labels = objectAt(selector, 'matchLabels');
  const label = kind.toLowerCase();
  if (Object.keys(labels).length === 0) {
    fail(`invalid ${label}: no selectors, therefore cannot be exposed`);
  }
  const expressions = listAt(selector, 'matchExpressions');
  if (expressions.length > 0) {
    fail(
      `couldn't convert expressions - ${JSON.stringify(expressions)} to map-based selector format`,
    );
  }
  return labels;
}

/** A port of the exposed object, with its protocol. */
interface ObjectPort {
  readonly port: number;
  readonly protocol: string;
}

function portsOfObject(object: JsonObject, kind: Kind): ObjectPort[] {
  const spec = objectAt(object, 'spec');
  const podSpec = kind === 'Pod' ? spec : objectAt(spec, 'template', 'spec');
  const [list, member] =
    kind === 'Service'
      ? [listAt(spec, 'ports'), 'port']
      : [
          listAt(podSpec, 'containers').flatMap((container) => listAt(container, 'ports')),
          'containerPort',
        ];
  return list.map((port) => ({
    port: Number(port[member]),
    protocol: textAt(port, 'protocol') || 'TCP',
  }));
}

/** Creates the ports of the Service from the flags or the object, one for each protocol. */
function portsOf(session: Session, object: JsonObject, kind: Kind): JsonObject[] {
  const { flags } = session;
  const objectPorts = portsOfObject(object, kind);
  const text = flags.text('port') ?? '';
  const found = [...new Set(objectPorts.map(({ port }) => String(port)))];
  const numbers = text === '' ? found : text.split(',');
  if (numbers.length === 0 && flags.text('cluster-ip') !== 'None') {
    throw new CliError("couldn't find port via --port flag or introspection");
  }
  const protocol = flags.text('protocol') ?? '';
  const targetFlag = flags.text('target-port') ?? '';
  return numbers.flatMap((digits, at) => {
    if (!/^[-+]?\d{1,9}$/.test(digits)) {
      throw new CliError(
        problemText({ code: 'number', parser: 'Atoi', text: digits, problem: 'syntax' }),
      );
    }
    const port = Number(digits);
    const target = /^\d+$/.test(targetFlag) ? Number(targetFlag) : targetFlag;
    const targetPort = targetFlag === '' ? port : target;
    const name = numbers.length > 1 ? `port-${at + 1}` : '';
    const protocols = protocol === '' ? protocolsOf(objectPorts, port) : [protocol];
    return protocols.map((portProtocol) => {
      const protocolName = `port-${at + 1}-${portProtocol.toLowerCase()}`;
      const portName = protocols.length > 1 ? protocolName : name;
      const named = portName === '' ? {} : { name: portName };
      return { ...named, port, protocol: portProtocol, targetPort };
    });
  });
}

function protocolsOf(objectPorts: readonly ObjectPort[], port: number): readonly string[] {
  const samePorts = objectPorts.filter((objectPort) => objectPort.port === port);
  return samePorts.length === 0 ? ['TCP'] : samePorts.map(({ protocol }) => protocol);
}
