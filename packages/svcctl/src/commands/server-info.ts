import { toYaml } from '@wheelhouse/client';
import { apiVersionOf } from '@wheelhouse/machinery';
import type { Command } from '../command.ts';
import { CliError } from '../io.ts';
import { alignLines } from '../output/table.ts';
import { clientVersion } from '../session.ts';

export const apiResourcesCommand: Command = {
  name: 'api-resources',
  summary: 'Print the supported API resources on the server',
  flags: [
    { name: 'api-group', type: 'text', help: 'Only this group; empty for the core group' },
    {
      name: 'namespaced',
      type: 'boolean',
      help: 'Only namespaced resources (false: only the others)',
    },
    { name: 'verbs', type: 'list', help: 'Only those that support the verbs' },
    { name: 'categories', type: 'list', help: 'Only those in the categories' },
    { name: 'output', short: 'o', type: 'text', help: 'wide or name' },
    { name: 'no-headers', type: 'boolean', help: 'Omit the headers' },
    { name: 'sort-by', type: 'text', help: 'name or kind' },
  ],
  async run(session) {
    const { flags, io } = session;
    const group = flags.text('api-group');
    const verbs = flags.list('verbs').flatMap((one) => one.split(','));
    const categories = flags.list('categories').flatMap((one) => one.split(','));
    const found = (await session.discovery()).resources.filter(
      (one) =>
        one.preferred &&
        one.verbs.length > 0 &&
        (group === undefined || one.group === group) &&
        (!flags.has('namespaced') || one.namespaced === flags.boolean('namespaced')) &&
        verbs.every((verb) => one.verbs.includes(verb)) &&
        categories.every((category) => one.categories.includes(category)),
    );
    const sortBy = flags.text('sort-by');
    if (sortBy !== undefined && sortBy !== 'name' && sortBy !== 'kind') {
      throw new CliError('--sort-by accepts only name or kind');
    }
    const key = sortBy === 'kind' ? 'kind' : 'resource';
    if (sortBy !== undefined) found.sort((one, other) => (one[key] < other[key] ? -1 : 1));
    if (flags.text('output') === 'name') {
      const names = found.map(({ group: own, resource }) =>
        own === '' ? resource : `${resource}.${own}`,
      );
      io.out(names.map((name) => `${name}\n`).join(''));
      return 0;
    }
    const wide = flags.text('output') === 'wide';
    const head = ['NAME', 'SHORTNAMES', 'APIVERSION', 'NAMESPACED', 'KIND'];
    const lines = found.map((one) => [
      one.resource,
      one.shortNames.join(','),
      apiVersionOf(one),
      String(one.namespaced),
      one.kind,
      ...(wide ? [one.verbs.join(','), one.categories.join(',')] : []),
    ]);
    const heading = [...head, ...(wide ? ['VERBS', 'CATEGORIES'] : [])];
    io.out(alignLines(flags.boolean('no-headers') ? lines : [heading, ...lines]));
    return 0;
  },
};

export const apiVersionsCommand: Command = {
  name: 'api-versions',
  summary: 'Print the supported API versions on the server',
  async run(session) {
    const { groupVersions } = await session.discovery();
    session.io.out(
      [...groupVersions]
        .sort()
        .map((one) => `${one}\n`)
        .join(''),
    );
    return 0;
  },
};

export const versionCommand: Command = {
  name: 'version',
  summary: 'Print the client and server versions',
  flags: [
    { name: 'client', type: 'boolean', help: "Print the client's version only; contact no server" },
    { name: 'output', short: 'o', type: 'text', help: 'json or yaml' },
  ],
  async run(session) {
    const { flags, io } = session;
    const client = {
      gitVersion: `v${clientVersion}`,
      platform: `${process.platform}/${process.arch}`,
    };
    const server = flags.boolean('client') ? undefined : await session.client.get('/version');
    const output = flags.text('output');
    const both = {
      clientVersion: client,
      ...(server === undefined ? {} : { serverVersion: server }),
    };
    if (output === 'json') io.out(`${JSON.stringify(both, null, 2)}\n`);
    else if (output === 'yaml') io.out(toYaml(both));
    else if (output !== undefined) throw new CliError("--output must be 'yaml' or 'json'");
    else {
      io.out(`Client Version: ${client.gitVersion}\n`);
      if (server !== undefined) io.out(`Server Version: ${String(server.gitVersion)}\n`);
    }
    return 0;
  },
};
