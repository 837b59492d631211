import { type JsonObject, jsonEqual } from '@wheelhouse/machinery';
import type { Command } from '../../command.ts';
import { CliError } from '../../io.ts';
import { listAt, nameOf, objectAt } from '../../objects.ts';
import type { Session } from '../../session.ts';
import { withPodSpec } from '../../set/pod-spec.ts';
import { matchedLabels } from '../../set/selector-labels.ts';
import { setEach, setFlags } from '../../set/set-objects.ts';

export const serviceAccountCommand: Command = {
  name: 'serviceaccount',
  aliases: ['sa'],
  completes: 'objects',
  summary: 'Update the service account of a resource',
  usage: '(-f FILENAME | TYPE NAME) SERVICE_ACCOUNT',
  flags: setFlags.filter((flag) => flag.name !== 'selector'),
  async run(session, args) {
    const serviceAccountName = args.at(-1);
    if (serviceAccountName === undefined) throw new CliError('serviceaccount is required');
    return setEach(session, args.slice(0, -1), {
      done: 'serviceaccount updated',
      doing: 'failed to patch ServiceAccountName',
      reportsUnchanged: true,
      change: (one) => withPodSpec(one, (spec) => ({ ...spec, serviceAccountName })),
    });
  },
};

export const selectorCommand: Command = {
  name: 'selector',
  completes: 'objects',
  summary: 'Set the selector on a resource',
  usage: '(-f FILENAME | TYPE NAME) EXPRESSIONS',
  flags: [
    ...setFlags,
    { name: 'resource-version', type: 'text', help: 'Only if this is the current resourceVersion' },
  ],
  async run(session, args) {
    const text = args.at(-1);
    if (text === undefined) throw new CliError('one selector is required');
    const selector = matchedLabels(text);
    const resourceVersion = session.flags.text('resource-version') ?? '';
    return setEach(session, args.slice(0, -1), {
      done: 'selector updated',
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
    });
  },
};

export const subjectCommand: Command = {
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
  run(session, args) {
    const names = ['user', 'group', 'serviceaccount'];
    if (names.every((name) => session.flags.list(name).length === 0)) {
      throw new CliError('you must specify at least one value of user, group or serviceaccount');
    }
    return setEach(session, args, {
      done: 'subjects updated',
      doing: 'failed to patch subjects to rolebinding:',
      change({ object, resource }) {
        const kind = String(object['kind']);
        const [apiGroup = ''] = String(object['apiVersion']).split('/');
        if (!/^rbac\./.test(apiGroup) || !/^(Cluster)?RoleBinding$/.test(kind)) {
          const label = `${resource?.resource ?? kind.toLowerCase()}/${nameOf(object)}`;
          throw new CliError(
            `error: ${label} setting subjects is only supported for ` +
              'RoleBinding/ClusterRoleBinding\n',
          );
        }
        const current = listAt(object, 'subjects');
        const added = subjectsOf(session, { apiGroup, kind }).filter(
          (one) => !current.some((other) => jsonEqual(one, other)),
        );
        return added.length === 0 ? object : { ...object, subjects: [...current, ...added] };
      },
    });
  },
};

function subjectsOf(
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
