import { type JsonObject, jsonEqual, setMember } from '@wheelhouse/machinery';
import { resourceVersionFlag } from '../../apply/writes.ts';
import { labelsOfSelector, pairOf, parseQuantities, splitPairs } from '../../argument-values.ts';
import type { Command } from '../../command.ts';
import { reportFailures } from '../../errors.ts';
import { CliError, throwFirst } from '../../io.ts';
import { listAt, nameOf, objectAt } from '../../objects.ts';
import type { Session } from '../../session.ts';
import { envCommand } from './env.ts';
import {
  changeContainers,
  containerFilter,
  containersFlag,
  type SettableObject,
  setEach,
  setFlags,
  withPodSpec,
} from './set-objects.ts';

const serviceAccountCommand: Command = {
  name: 'serviceaccount',
  aliases: ['sa'],
  completes: 'objects',
  summary: 'Update the service account of a resource',
  usage: '(-f FILENAME | TYPE NAME) SERVICE_ACCOUNT',
  flags: setFlags.filter((flag) => flag.name !== 'selector'),
  async run(session, args) {
    const serviceAccountName = args.at(-1);
    if (serviceAccountName === undefined) throw new CliError('serviceaccount is required');
    return setEach(session, args.slice(0, -1), () => ({
      report: 'serviceaccount updated',
      errorPrefix: 'failed to patch ServiceAccountName',
      reportsUnchanged: true,
      change: (target) => withPodSpec(target, (spec) => ({ ...spec, serviceAccountName })),
    }));
  },
};

const selectorCommand: Command = {
  name: 'selector',
  completes: 'objects',
  summary: 'Set the selector on a resource',
  usage: '(-f FILENAME | TYPE NAME) EXPRESSIONS',
  flags: [...setFlags.filter((flag) => flag.name !== 'selector'), resourceVersionFlag],
  async run(session, args) {
    const text = args.at(-1);
    if (text === undefined) throw new CliError('one selector is required');
    const resourceVersion = session.flags.text('resource-version') ?? '';
    return setEach(session, args.slice(0, -1), () => {
      const selector = labelsOfSelector(text);
      return {
        report: 'selector updated',
        reportsUnchanged: true,
        change({ object }) {
          if (object['apiVersion'] !== 'v1' || object['kind'] !== 'Service') {
            throw new CliError('setting a selector is only supported for Services');
          }
          const metadata = objectAt(object, 'metadata');
          return {
            ...object,
            metadata: resourceVersion === '' ? metadata : { ...metadata, resourceVersion },
            spec: { ...objectAt(object, 'spec'), selector },
          };
        },
      };
    });
  },
};

const subjectCommand: Command = {
  name: 'subject',
  completes: 'objects',
  summary: 'Update the user, group, or service account in a role binding or cluster role binding',
  usage: '(-f FILENAME | TYPE NAME) [--user=…] [--group=…] [--serviceaccount=NAMESPACE:NAME]',
  flags: [
    ...setFlags,
    { name: 'user', type: 'list', help: 'Users to bind' },
    { name: 'group', type: 'list', help: 'Groups to bind' },
    { name: 'serviceaccount', type: 'list', help: 'Service accounts to bind: NAMESPACE:NAME' },
  ],
  run: (session, args) =>
    setEach(session, args, () => {
      const names = ['user', 'group', 'serviceaccount'];
      if (names.every((name) => session.flags.list(name).length === 0)) {
        throw new CliError('you must specify at least one value of user, group or serviceaccount');
      }
      return {
        report: 'subjects updated',
        errorPrefix: 'failed to patch subjects to rolebinding:',
        change: (target) => withSubjects(session, target),
      };
    }),
};

function withSubjects(session: Session, { object, resource }: SettableObject): JsonObject {
  const kind = String(object['kind']);
  const [apiGroup = ''] = String(object['apiVersion']).split('/');
  if (!/^rbac\./.test(apiGroup) || !/^(Cluster)?RoleBinding$/.test(kind)) {
    const label = `${resource?.resource ?? kind.toLowerCase()}/${nameOf(object)}`;
    throw new CliError(
      `error: ${label} setting subjects is only supported for RoleBinding/ClusterRoleBinding\n`,
    );
  }
  const current = listAt(object, 'subjects');
  const added = parseSubjects(session, { apiGroup, kind }).filter(
    (subject) => !current.some((existing) => jsonEqual(subject, existing)),
  );
  return added.length === 0 ? object : { ...object, subjects: [...current, ...added] };
}

function parseSubjects(
  session: Session,
  { apiGroup, kind }: { readonly apiGroup: string; readonly kind: string },
): JsonObject[] {
  const sorted = (flag: string) => [...new Set(session.flags.list(flag))].sort();
  const accounts = sorted('serviceaccount').map((text) => {
    const [namespace = '', name = '', ...more] = text.split(':');
    if (name === '' || more.length > 0) {
      throw new CliError('serviceaccount must be <namespace>:<name>');
    }
    if (namespace === '' && kind === 'ClusterRoleBinding') {
      throw new CliError('serviceaccount must be <namespace>:<name>, namespace must be specified');
    }
    return { kind: 'ServiceAccount', name, namespace: namespace || session.namespace };
  });
  return [
    ...sorted('user').map((name) => ({ apiGroup, kind: 'User', name })),
    ...sorted('group').map((name) => ({ apiGroup, kind: 'Group', name })),
    ...accounts,
  ];
}

const resourcesCommand: Command = {
  name: 'resources',
  completes: 'objects',
  summary: 'Update resource requests/limits on objects with pod templates',
  usage: '(-f FILENAME | TYPE NAME) [--limits=LIMITS] [--requests=REQUESTS]',
  flags: [
    ...setFlags,
    containersFlag,
    { name: 'limits', type: 'text', help: 'cpu=100m,memory=256Mi' },
    { name: 'requests', type: 'text', help: 'cpu=100m,memory=256Mi' },
  ],
  async run(session, args) {
    const [limits = '', requests = ''] = ['limits', 'requests'].map((name) =>
      session.flags.text(name),
    );
    const selector = session.flags.text('containers') ?? '*';
    const absent: CliError[] = [];
    const exitCode = await setEach(session, args, () => {
      if (limits === '' && requests === '') {
        throw new CliError(
          'you must specify an update to requests or limits (in the form of --requests/--limits)',
        );
      }
      const amounts = { limits: parseQuantities(limits), requests: parseQuantities(requests) };
      return {
        report: 'resource requirements updated',
        errorPrefix: 'failed to patch resources update to pod template',
        change: (target) =>
          withPodSpec(target, (before) => {
            const { spec, found } = changeContainers(
              before,
              containerFilter(selector),
              (container) => withAmounts(container, amounts),
            );
            if (!found) {
              absent.push(new CliError(`error: unable to find container named ${selector}`));
            }
            return spec;
          }),
      };
    });
    return reportFailures(session.io, absent) || exitCode;
  },
};

function withAmounts(
  container: JsonObject,
  amounts: Readonly<Record<'limits' | 'requests', ReadonlyMap<string, string>>>,
): JsonObject {
  const resources: JsonObject = { ...objectAt(container, 'resources') };
  for (const list of ['limits', 'requests'] as const) {
    if (amounts[list].size === 0) continue;
    const after: JsonObject = { ...objectAt(resources, list) };
    for (const [name, amount] of amounts[list]) setMember(after, name, amount);
    resources[list] = after;
  }
  return { ...container, resources };
}

const imageCommand: Command = {
  name: 'image',
  completes: 'objects',
  summary: 'Update the image of a pod template',
  usage: '(-f FILENAME | TYPE NAME) CONTAINER_NAME_1=CONTAINER_IMAGE_1 ...',
  flags: setFlags,
  async run(session, args) {
    const { words, images } = parseImages(args);
    const absent: CliError[] = [];
    const exitCode = await setEach(session, words, () => {
      throwFirst(findProblems(images));
      return {
        report: 'image updated',
        errorPrefix: 'failed to patch image update to pod template:',
        change: (target) =>
          withPodSpec(target, (spec) => withImages(spec, images, (error) => absent.push(error))),
      };
    });
    return reportFailures(session.io, absent) || exitCode;
  },
};

function parseImages(args: readonly string[]): {
  readonly words: readonly string[];
  readonly images: ReadonlyMap<string, string>;
} {
  const { words, pairs } = splitPairs(args, 'image');
  const invalid = pairs.filter((pair) => pair.indexOf('=') <= 0);
  if (invalid.length > 0) throw new CliError(`invalid image format: ${invalid.join(', ')}`);
  return { words, images: new Map(pairs.map(pairOf)) };
}

const findProblems = (images: ReadonlyMap<string, string>): readonly (string | false)[] => [
  images.size === 0 && 'at least one image update is required',
  images.size > 1 &&
    images.has('*') &&
    'all containers are already specified by *, but saw more than one ' +
      'container_name=container_image pairs',
];

function withImages(
  before: JsonObject,
  images: ReadonlyMap<string, string>,
  onAbsent: (error: CliError) => void,
): JsonObject {
  let after = before;
  for (const [name, image] of images) {
    const isNamed = (container: string) => name === '*' || container === name;
    const { spec, found } = changeContainers(after, isNamed, (container) => ({
      ...container,
      image,
    }));
    if (!found) {
      onAbsent(new CliError(`error: unable to find container named ${JSON.stringify(name)}`));
    }
    after = spec;
  }
  return after;
}

/** The commands that change one part of objects, on the server or in files (`--local`). */
export const setCommand: Command = {
  name: 'set',
  summary: 'Set specific features on objects',
  usage: 'SUBCOMMAND',
  subcommands: [
    envCommand,
    imageCommand,
    resourcesCommand,
    selectorCommand,
    serviceAccountCommand,
    subjectCommand,
  ],
};
