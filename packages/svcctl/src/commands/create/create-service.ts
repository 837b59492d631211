import { dnsSubdomain, type JsonObject, portName, problemText } from '@wheelhouse/machinery';
import type { Command } from '../../command.ts';
import { createFlags, createObject, metadataIn, onlyName } from '../../create-object.ts';
import type { FlagSpec } from '../../flags.ts';
import { CliError } from '../../io.ts';
import type { Session } from '../../session.ts';

const tcpFlag: FlagSpec = { name: 'tcp', type: 'list', help: 'PORT[:TARGET_PORT]; repeatable' };

/** One type of Services, and the members that its flags set. */
interface ServiceType {
  readonly type: string;
  readonly members?: (session: Session) => JsonObject;
}

function createService(
  session: Session,
  args: readonly string[],
  { type, members = () => ({}) }: ServiceType,
): Promise<number> {
  const name = onlyName(args);
  const clusterIP = session.flags.text('clusterip') ?? '';
  const nodePort = session.flags.integer('node-port') ?? 0;
  const pairs = session.flags.list('tcp').flatMap((one) => one.split(','));
  if (clusterIP !== 'None' && pairs.length === 0 && type !== 'ExternalName') {
    throw new CliError('at least one tcp port specifier must be provided');
  }
  const own = members(session);
  const ports = pairs.map((pair) => ({
    name: pair.replaceAll(':', '-'),
    ...(nodePort === 0 ? {} : { nodePort }),
    ...portsOf(pair),
    protocol: 'TCP',
  }));
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { ...metadataIn(session, name), labels: { app: name } },
    spec: {
      ...(clusterIP === '' ? {} : { clusterIP }),
      ...own,
      ...(ports.length === 0 ? {} : { ports }),
      selector: { app: name },
      type,
    },
  };
  return createObject(session, service, { doing: `failed to create ${type} service:` });
}

/** Reads `PORT[:TARGET_PORT]`. Throws CliError. */
function portsOf(pair: string): { readonly port: number; readonly targetPort: number | string } {
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

const commandOf = (
  name: string,
  how: ServiceType & { readonly summary: string; readonly flags?: readonly FlagSpec[] },
): Command => ({
  name,
  summary: how.summary,
  usage: 'NAME [--tcp=PORT:TARGET_PORT]',
  flags: [...createFlags, tcpFlag, ...(how.flags ?? [])],
  run: (session, args) => createService(session, args, how),
});

function externalName(session: Session): JsonObject {
  const name = session.flags.text('external-name');
  if (name === undefined) throw new CliError('required flag(s) "external-name" not set');
  if (dnsSubdomain(name).length > 0) {
    throw new CliError(`invalid service external name ${name}`);
  }
  return { externalName: name };
}

/** `create service clusterip`, `nodeport`, `loadbalancer`, and `externalname`. */
export const createServiceCommand: Command = {
  name: 'service',
  aliases: ['svc'],
  summary: 'Create a service using a specified subcommand',
  subcommands: [
    commandOf('clusterip', {
      type: 'ClusterIP',
      summary: 'Create a ClusterIP service',
      flags: [{ name: 'clusterip', type: 'text', help: 'Its address; None for a headless one' }],
    }),
    commandOf('externalname', {
      type: 'ExternalName',
      summary: 'Create an ExternalName service',
      flags: [{ name: 'external-name', type: 'text', help: 'The name it stands for' }],
      members: externalName,
    }),
    commandOf('loadbalancer', {
      type: 'LoadBalancer',
      summary: 'Create a LoadBalancer service',
    }),
    commandOf('nodeport', {
      type: 'NodePort',
      summary: 'Create a NodePort service',
      flags: [{ name: 'node-port', type: 'integer', help: 'Its port on each node' }],
    }),
  ],
};
