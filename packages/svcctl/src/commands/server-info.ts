import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { ApiError, toYaml } from '@wheelhouse/client';
import { apiVersionOf, compareText, type JsonObject } from '@wheelhouse/machinery';
import type { Command } from '../command.ts';
import { CliError, usageError } from '../io.ts';
import { pathWithin } from '../local-path.ts';
import { listAt, nameOf, namespaceOf, objectAt, textAt, withGroup } from '../objects.ts';
import { orderedJson, outputFlags, printerOr } from '../output/output.ts';
import { alignLines, noHeadersFlag } from '../output/table.ts';
import { itemsWithType, listObjects, type Target, targetPath } from '../selection.ts';
import { clientVersion, type Session } from '../session.ts';

/**
 * Prints the URLs of the server and of services with the label `cluster-service`. `dump` writes
 * objects and logs.
 */
export const clusterInfoCommand: Command = {
  name: 'cluster-info',
  summary: 'Display cluster information',
  subcommands: [
    {
      name: 'dump',
      summary: 'Dump relevant information for debugging and diagnosis',
      flags: [
        ...outputFlags,
        {
          name: 'output-directory',
          type: 'text',
          help: 'Folder to write to; - for standard output',
        },
        { name: 'namespaces', type: 'items', help: 'Namespaces to dump' },
        { name: 'all-namespaces', short: 'A', type: 'boolean', help: 'Dump all namespaces' },
      ],
      run: dump,
    },
  ],
  async run(session) {
    const dialect = await session.dialect();
    const resource = await session.resourceOfKind('Service');
    const namespace = session.flags.text('namespace') ?? dialect.systemNamespace('system');
    const services = await listObjects(
      session.client,
      { resource, namespace, name: undefined },
      { labelSelector: `${dialect.label('cluster-service')}=true` },
    );
    const { server } = session.context.client;
    const product = dialect.name === 'kubernetes' ? 'Kubernetes control plane' : 'Control plane';
    session.io.out(`${product} is running at ${server}\n`);
    for (const service of services) {
      const name = textAt(service, 'metadata', 'labels', dialect.label('name')) || nameOf(service);
      session.io.out(`${name} is running at ${serviceUrl(server, service)}\n`);
    }
    session.io.out(
      "\nTo further debug and diagnose cluster problems, use 'svcctl cluster-info dump'.\n",
    );
    return 0;
  },
};

/** The URL of a Service: its load balancer, or its path on the server's proxy. */
function serviceUrl(server: string, service: JsonObject): string {
  const ports = listAt(service, 'spec', 'ports');
  const [ingress] = listAt(service, 'status', 'loadBalancer', 'ingress');
  if (ingress !== undefined) {
    const host = textAt(ingress, 'ip') || textAt(ingress, 'hostname');
    return ports.map((port) => `http://${host}:${String(port['port'])} `).join('');
  }
  const [first] = ports;
  const portName = textAt(first, 'name');
  const isSecure = portName === 'https' || first?.['port'] === 443;
  const scheme = isSecure ? 'https:' : '';
  const ending = scheme !== '' || portName !== '' ? `:${portName}` : '';
  const name = `${scheme}${nameOf(service)}${ending}`;
  return `${server}/api/v1/namespaces/${namespaceOf(service)}/services/${name}/proxy`;
}

/** The kinds that are dumped from each namespace, and the names of their files. */
const dumpedKinds: readonly (readonly [kind: string, apiVersion: string, file: string])[] = [
  ['Event', 'v1', 'events'],
  ['ReplicationController', 'v1', 'replication-controllers'],
  ['Service', 'v1', 'services'],
  ['DaemonSet', 'apps/v1', 'daemonsets'],
  ['Deployment', 'apps/v1', 'deployments'],
  ['ReplicaSet', 'apps/v1', 'replicasets'],
  ['Pod', 'v1', 'pods'],
];

async function dump(session: Session): Promise<number> {
  const format = session.flags.text('output') || 'json';
  const printer = format === 'json' ? orderedJson(session) : printerOr(session, 'json');
  const write = createWriter(session, format);
  await dumpList(session, { kind: 'Node', apiVersion: 'v1', namespace: '' }, (list) =>
    write('nodes', printer(list)),
  );
  for (const namespace of await namespacesOf(session)) {
    for (const [kind, apiVersion, file] of dumpedKinds) {
      await dumpList(session, { kind, apiVersion, namespace }, async (list, target) => {
        write(path.join(namespace, file), printer(list));
        if (kind === 'Pod') await dumpLogs(session, { target, pods: itemsWithType(list), write });
      });
    }
  }
  const folder = session.flags.text('output-directory') ?? '-';
  if (folder !== '' && folder !== '-') session.io.out(`Cluster info dumped to ${folder}\n`);
  return 0;
}

type WriteFile = (file: string, text: string, ending?: string) => void;

function createWriter(session: Session, format: string): WriteFile {
  const folder = session.flags.text('output-directory') ?? '-';
  if (folder === '' || folder === '-') return (_file, text) => session.io.out(text);
  const defaultEnding = format === 'json' || format === 'yaml' ? `.${format}` : '.txt';
  return (file, text, ending = defaultEnding) => {
    const full = pathWithin(session.path(folder), `${file}${ending}`);
    mkdirSync(path.dirname(full), { recursive: true });
    writeFileSync(full, text);
  };
}

/**
 * Lists the objects of a kind and passes the list to `use`, if the server serves the kind. An empty
 * list has null for its items, as kubectl prints it.
 */
async function dumpList(
  session: Session,
  listed: { readonly kind: string; readonly apiVersion: string; readonly namespace: string },
  use: (list: JsonObject, target: Target) => void | Promise<void>,
): Promise<void> {
  const resource = (await session.mapper()).byKind(listed.apiVersion, listed.kind);
  if (resource === undefined) return;
  const target = { resource, namespace: listed.namespace, name: undefined };
  const list = await session.client.get(targetPath(target));
  await use(listAt(list, 'items').length === 0 ? { ...list, items: null } : list, target);
}

async function namespacesOf(session: Session): Promise<readonly string[]> {
  if (session.flags.boolean('all-namespaces')) {
    const resource = await session.resourceOfKind('Namespace');
    const target = { resource, namespace: '', name: undefined };
    return (await listObjects(session.client, target, {})).map(nameOf);
  }
  const requested = session.flags.list('namespaces');
  if (requested.length > 0) return requested;
  return [(await session.dialect()).systemNamespace('system'), session.namespace];
}

async function dumpLogs(
  session: Session,
  options: {
    readonly target: Target;
    readonly pods: readonly JsonObject[];
    readonly write: WriteFile;
  },
): Promise<void> {
  for (const pod of options.pods) {
    const name = nameOf(pod);
    const file = path.join(options.target.namespace, name, 'logs');
    const spec = objectAt(pod, 'spec');
    const containers = [...listAt(spec, 'initContainers'), ...listAt(spec, 'containers')];
    let text = '';
    for (const container of containers) {
      const containerName = textAt(container, 'name');
      const label = `logs for container ${containerName} of pod ${namespaceOf(pod)}/${name}`;
      const log = await readLog(
        session,
        targetPath({ ...options.target, name }, 'log'),
        containerName,
      );
      text += `==== START ${label} ====\n${log}==== END ${label} ====\n`;
    }
    options.write(file, text, '.txt');
  }
}

async function readLog(session: Session, where: string, container: string): Promise<string> {
  try {
    return await session.client.raw(`${where}?container=${encodeURIComponent(container)}`);
  } catch (error) {
    if (error instanceof ApiError) return `Request log error: ${error.message}\n`;
    throw error;
  }
}

/** Throws CliError if there are arguments. */
function checkNoArguments(command: string, args: readonly string[]): void {
  if (args.length > 0) throw usageError(command, `unexpected arguments: [${args.join(' ')}]`);
}

/**
 * Prints the preferred version of each resource. Groups that the server cannot discover are a
 * failure after the output.
 */
export const apiResourcesCommand: Command = {
  name: 'api-resources',
  summary: 'Print the supported API resources on the server',
  flags: [
    { name: 'api-group', type: 'text', help: 'Only this group; empty for the core group' },
    {
      name: 'namespaced',
      type: 'boolean',
      help: 'Only namespaced resources; false for cluster-scoped ones',
    },
    { name: 'verbs', type: 'items', help: 'Only resources that support all of these verbs' },
    { name: 'categories', type: 'items', help: 'Only resources in all of these categories' },
    { name: 'output', short: 'o', type: 'text', help: 'wide or name' },
    noHeadersFlag,
    { name: 'sort-by', type: 'text', help: 'name or kind' },
    { name: 'cached', type: 'boolean', help: 'Ignored; svcctl keeps no cache' },
  ],
  async run(session, args) {
    checkNoArguments('api-resources', args);
    const { flags, io } = session;
    const output = flags.text('output') ?? '';
    if (!['', 'wide', 'name'].includes(output)) {
      throw new CliError(`--output ${output} is not available`);
    }
    const group = flags.text('api-group');
    const verbs = flags.list('verbs');
    const categories = flags.list('categories');
    const { resources: served, failures } = await session.discovery();
    if (failures.size > 0) session.defer([discoveryError(failures)]);
    const resources = served.filter(
      (resource) =>
        resource.preferred &&
        resource.verbs.length > 0 &&
        (group === undefined || resource.group === group) &&
        (!flags.has('namespaced') || resource.namespaced === flags.boolean('namespaced')) &&
        verbs.every((verb) => resource.verbs.includes(verb)) &&
        categories.every((category) => resource.categories.includes(category)),
    );
    const sortBy = flags.text('sort-by') || undefined;
    if (sortBy !== undefined && sortBy !== 'name' && sortBy !== 'kind') {
      throw new CliError('--sort-by accepts only name or kind');
    }
    const key = sortBy === undefined ? 'group' : sortBy === 'kind' ? 'kind' : 'resource';
    resources.sort(
      (left, right) =>
        compareText(left[key], right[key]) || compareText(left.resource, right.resource),
    );
    if (output === 'name') {
      io.out(
        resources.map((resource) => `${withGroup(resource.resource, resource.group)}\n`).join(''),
      );
      return 0;
    }
    const wide = output === 'wide';
    const head = ['NAME', 'SHORTNAMES', 'APIVERSION', 'NAMESPACED', 'KIND'];
    const lines = resources.map((resource) => [
      resource.resource,
      resource.shortNames.join(','),
      apiVersionOf(resource),
      String(resource.namespaced),
      resource.kind,
      ...(wide ? [resource.verbs.join(','), resource.categories.join(',')] : []),
    ]);
    const heading = [...head, ...(wide ? ['VERBS', 'CATEGORIES'] : [])];
    io.out(alignLines(flags.boolean('no-headers') ? lines : [heading, ...lines]));
    return 0;
  },
};

/** The error for versions whose resources are unknown, with the reasons. */
function discoveryError(failures: ReadonlyMap<string, string>): CliError {
  const reasons = [...failures].map(([apiVersion, why]) => `${apiVersion}: ${why}`).sort();
  return new CliError(`unable to retrieve the complete list of server APIs: ${reasons.join(', ')}`);
}

/** Prints all served group-versions in alphabetical order. */
export const apiVersionsCommand: Command = {
  name: 'api-versions',
  summary: 'Print the supported API versions on the server',
  async run(session, args) {
    checkNoArguments('api-versions', args);
    const { groupVersions } = await session.discovery();
    session.io.out(
      [...groupVersions]
        .sort()
        .map((groupVersion) => `${groupVersion}\n`)
        .join(''),
    );
    return 0;
  },
};

/** Go's names of platforms that Node names differently. */
const platformNames: Readonly<Record<string, string>> = { win32: 'windows', sunos: 'solaris' };

/** Go's name of the processor's architecture. */
const architecture = (): string =>
  ({ x64: 'amd64', ia32: '386' })[process.arch as string] ?? process.arch;

/**
 * Prints both versions; prints the client's even if the server does not answer, which is a failure.
 */
export const versionCommand: Command = {
  name: 'version',
  summary: 'Print the client and server versions',
  flags: [
    {
      name: 'client',
      type: 'boolean',
      help: 'Print only the version of the client, without contacting a server',
    },
    { name: 'output', short: 'o', type: 'text', help: 'json or yaml' },
  ],
  async run(session, args) {
    if (args.length > 0) throw new CliError(`extra arguments: [${args.join(' ')}]`);
    const { flags, io } = session;
    const output = flags.text('output') ?? '';
    if (!['', 'json', 'yaml'].includes(output)) {
      throw new CliError("--output must be 'yaml' or 'json'");
    }
    const [major = '', minor = ''] = clientVersion.split('.');
    const client = {
      major,
      minor,
      gitVersion: `v${clientVersion}`,
      platform: `${platformNames[process.platform] ?? process.platform}/${architecture()}`,
    };
    // The client's version helps to find out why the server does not answer.
    const [answer] = await Promise.allSettled([
      flags.boolean('client') ? undefined : session.client.get('/version'),
    ]);
    const server = answer.status === 'fulfilled' ? answer.value : undefined;
    const versions = {
      clientVersion: client,
      ...(server === undefined ? {} : { serverVersion: server }),
    };
    if (output === 'json') io.out(`${JSON.stringify(versions, null, 2)}\n`);
    else if (output === 'yaml') io.out(`${toYaml(versions)}\n`);
    else {
      io.out(`Client Version: ${client.gitVersion}\n`);
      if (server !== undefined) io.out(`Server Version: ${String(server.gitVersion)}\n`);
    }
    if (answer.status === 'rejected') throw answer.reason;
    return 0;
  },
};
