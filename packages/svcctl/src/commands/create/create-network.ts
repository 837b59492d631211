import {
  cut,
  dnsSubdomain,
  type JsonObject,
  portName,
  problemText,
  setMember,
} from '@wheelhouse/machinery';
import type { Command } from '../../command.ts';
import { createFlags, createObject, newMetadata, requireName } from '../../create-object.ts';
import type { FlagSpec } from '../../flags.ts';
import { CliError } from '../../io.ts';
import type { Session } from '../../session.ts';

/** Each `--rule` adds a path; rules of one host and those of one TLS secret are merged. */
export const createIngressCommand: Command = {
  name: 'ingress',
  aliases: ['ing'],
  summary: 'Create an ingress with the specified name',
  usage: 'NAME --rule=HOST/PATH=SERVICE:PORT[,tls[=SECRET]]',
  flags: [
    ...createFlags,
    { name: 'class', type: 'text', help: 'The class of the ingress' },
    {
      name: 'rule',
      type: 'list',
      help: 'HOST/PATH=SERVICE:PORT[,tls[=SECRET]]; PATH* matches a prefix',
    },
    { name: 'default-backend', type: 'text', help: 'SERVICE:PORT of the default backend' },
    { name: 'annotation', type: 'list', help: 'KEY=VALUE' },
  ],
  async run(session, args) {
    const name = requireName(session, args);
    const { rules, backend, annotations } = parseIngressFlags(session);
    const { group } = await session.dialect();
    const ingressClassName = session.flags.text('class') ?? '';
    const tls = createTls(rules);
    const ingress = {
      apiVersion: `${group('networking')}/v1`,
      kind: 'Ingress',
      metadata: {
        ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
        ...newMetadata(session, name),
      },
      spec: {
        ...(backend === undefined ? {} : { defaultBackend: backend }),
        ...(ingressClassName === '' ? {} : { ingressClassName }),
        ...(rules.length === 0 ? {} : { rules: createRules(rules) }),
        ...(tls.length === 0 ? {} : { tls }),
      },
    };
    return createObject(session, ingress, { errorPrefix: 'failed to create ingress:' });
  },
};

interface Rule {
  readonly host: string;
  readonly path: string;
  readonly service: string;
  /** Undefined without TLS; empty for TLS without a Secret. */
  readonly secret: string | undefined;
}

const rulePattern = /^([\w*.-]*)\/([^,=]*)=([\w-]+:[\w-]+)(?:,tls(?:=([^,=]*))?)?$/;

function parseIngressFlags({ flags }: Session): {
  readonly rules: readonly Rule[];
  readonly backend: JsonObject | undefined;
  readonly annotations: JsonObject;
} {
  const fallback = flags.text('default-backend') ?? '';
  const texts = flags.list('rule');
  if (fallback === '' && texts.length === 0) {
    throw new CliError(
      'not enough information provided: every ingress has to either specify a default-backend ' +
        '(which catches all traffic) or a list of rules (which catch specific paths)',
    );
  }
  const rules = texts.map((text): Rule => {
    const match = rulePattern.exec(text);
    if (match === null) {
      throw new CliError(
        `rule ${text} is invalid and should be in format host/path=svcname:svcport[,tls[=secret]]`,
      );
    }
    const [, host = '', path = '', service = '', secret] = match;
    return { host, path, service, secret: text.includes(',tls') ? (secret ?? '') : undefined };
  });
  const annotations: JsonObject = {};
  for (const text of flags.list('annotation')) {
    const [key, value] = cut(text, '=');
    if (value === undefined) {
      throw new CliError(`annotation ${text} is invalid and should be in format key=[value]`);
    }
    setMember(annotations, key, value);
  }
  if (fallback !== '' && fallback.split(':').length !== 2) {
    throw new CliError('default-backend should be in format servicename:serviceport');
  }
  return { rules, annotations, backend: fallback === '' ? undefined : createBackend(fallback) };
}

function createBackend(text: string): JsonObject {
  const [name = '', port = ''] = text.split(':');
  return {
    service: { name, port: /^\d+$/.test(port) ? { number: Number(port) } : { name: port } },
  };
}

function createRules(rules: readonly Rule[]): JsonObject[] {
  const byHost = new Map<string, JsonObject[]>();
  for (const { host, path, service } of rules) {
    const isPrefix = path.endsWith('*');
    const paths = byHost.get(host) ?? [];
    byHost.set(host, paths);
    paths.push({
      backend: createBackend(service),
      path: `/${isPrefix ? path.slice(0, -1) : path}`,
      pathType: isPrefix ? 'Prefix' : 'Exact',
    });
  }
  return [...byHost].map(([host, paths]) => ({
    ...(host === '' ? {} : { host }),
    http: { paths },
  }));
}

/** Groups the distinct hosts with TLS by Secret. */
function createTls(rules: readonly Rule[]): JsonObject[] {
  const bySecret = new Map<string, string[]>();
  const seen = new Set<string>();
  for (const { host, secret } of rules) {
    if (secret === undefined || seen.has(host)) continue;
    seen.add(host);
    const hosts = bySecret.get(secret);
    if (hosts !== undefined) hosts.push(host);
    else if (host !== '' || secret !== '') bySecret.set(secret, host === '' ? [] : [host]);
  }
  return [...bySecret].map(([secretName, hosts]) => ({
    ...(hosts.length === 0 ? {} : { hosts }),
    ...(secretName === '' ? {} : { secretName }),
  }));
}

const tcpFlag: FlagSpec = { name: 'tcp', type: 'items', help: 'PORT[:TARGET_PORT]; repeatable' };

/** A type of Service, and the members of its specification that flags set. */
interface ServiceType {
  readonly type: string;
  readonly members?: (session: Session) => JsonObject;
}

function createService(
  session: Session,
  args: readonly string[],
  { type, members = () => ({}) }: ServiceType,
): Promise<number> {
  const name = requireName(session, args);
  const clusterIP = session.flags.text('clusterip') ?? '';
  const nodePort = session.flags.integer('node-port') ?? 0;
  const pairs = session.flags.list('tcp');
  if (clusterIP !== 'None' && pairs.length === 0 && type !== 'ExternalName') {
    throw new CliError('at least one tcp port specifier must be provided');
  }
  const typeMembers = members(session);
  const ports = pairs.map((pair) => ({
    name: pair.replaceAll(':', '-'),
    ...(nodePort === 0 ? {} : { nodePort }),
    ...parsePorts(pair),
    protocol: 'TCP',
  }));
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { ...newMetadata(session, name), labels: { app: name } },
    spec: {
      ...(clusterIP === '' ? {} : { clusterIP }),
      ...typeMembers,
      ...(ports.length === 0 ? {} : { ports }),
      selector: { app: name },
      type,
    },
  };
  return createObject(session, service, { errorPrefix: `failed to create ${type} service:` });
}

/** Parses `PORT[:TARGET_PORT]`. Throws CliError. */
function parsePorts(pair: string): { readonly port: number; readonly targetPort: number | string } {
  const [first = '', target] = pair.split(':');
  if (!/^\d+$/.test(first)) {
    throw new CliError(
      problemText({ code: 'number', parser: 'ParseUint', text: first, problem: 'syntax' }),
    );
  }
  const port = Number(first);
  if (port > 65_535) {
    throw new CliError(
      problemText({ code: 'number', parser: 'ParseUint', text: first, problem: 'range' }),
    );
  }
  if (target === undefined) return { port, targetPort: port };
  if (!/^[-+]?\d+$/.test(target)) {
    const faults = portName(target);
    if (faults.length > 0) throw new CliError(faults.join(','));
    return { port, targetPort: target };
  }
  const targetPort = Number(target);
  if (targetPort < 1 || targetPort > 65_535) {
    throw new CliError('must be between 1 and 65535, inclusive');
  }
  return { port, targetPort };
}

const createTypeCommand = (
  name: string,
  serviceType: ServiceType & { readonly summary: string; readonly flags?: readonly FlagSpec[] },
): Command => ({
  name,
  summary: serviceType.summary,
  usage: 'NAME [--tcp=PORT:TARGET_PORT]',
  flags: [...createFlags, tcpFlag, ...(serviceType.flags ?? [])],
  run: (session, args) => createService(session, args, serviceType),
});

function externalName(session: Session): JsonObject {
  const name = session.flags.text('external-name');
  if (name === undefined) throw new CliError('required flag(s) "external-name" not set');
  if (dnsSubdomain(name).length > 0) throw new CliError(`invalid service external name ${name}`);
  return { externalName: name };
}

/** `create service clusterip`, `nodeport`, `loadbalancer`, and `externalname`. */
export const createServiceCommand: Command = {
  name: 'service',
  aliases: ['svc'],
  summary: 'Create a service using a specified subcommand',
  subcommands: [
    createTypeCommand('clusterip', {
      type: 'ClusterIP',
      summary: 'Create a ClusterIP service',
      flags: [
        {
          name: 'clusterip',
          type: 'text',
          help: 'Cluster IP of the service; None for a headless service',
        },
      ],
    }),
    createTypeCommand('externalname', {
      type: 'ExternalName',
      summary: 'Create an ExternalName service',
      flags: [{ name: 'external-name', type: 'text', help: 'The external name of the service' }],
      members: externalName,
    }),
    createTypeCommand('loadbalancer', {
      type: 'LoadBalancer',
      summary: 'Create a LoadBalancer service',
    }),
    createTypeCommand('nodeport', {
      type: 'NodePort',
      summary: 'Create a NodePort service',
      flags: [{ name: 'node-port', type: 'integer', help: 'Port of the service on each node' }],
    }),
  ],
};
