import type { JsonObject } from '../../base/json.ts';
import type { Command } from '../command.ts';
import { createObject, metadataIn, onlyName } from '../create-object.ts';
import type { FlagSpec } from '../flags.ts';
import { CliError } from '../io.ts';
import { outputFlags } from '../output.ts';
import type { Session } from '../session.ts';
import { writeFlags } from '../writes.ts';

const roleFlags: readonly FlagSpec[] = [
  ...writeFlags,
  ...outputFlags,
  { name: 'verb', type: 'list', help: 'Verbs of the rule' },
  { name: 'resource', type: 'list', help: 'Resources the rule applies to: TYPE[.GROUP][/SUB]' },
  { name: 'resource-name', type: 'list', help: 'Names the rule is restricted to' },
];

const bindingFlags: readonly FlagSpec[] = [
  ...writeFlags,
  ...outputFlags,
  { name: 'clusterrole', type: 'text', help: 'The ClusterRole to refer to' },
  { name: 'user', type: 'list', help: 'Users to bind' },
  { name: 'group', type: 'list', help: 'Groups to bind' },
  { name: 'serviceaccount', type: 'list', help: 'Service accounts to bind: NAMESPACE:NAME' },
];

const words = (session: Session, flag: string): string[] =>
  session.flags.list(flag).flatMap((one) => one.split(','));

/** The group of the RBAC kinds, as this server calls it. */
async function rbacGroup(session: Session): Promise<string> {
  return (await session.resourceOfKind('ClusterRole')).group;
}

async function resourceRules(session: Session, verbs: string[]): Promise<JsonObject[]> {
  const byGroup = new Map<string, string[]>();
  for (const word of words(session, 'resource')) {
    const [type = '', subresource] = word.split('/');
    const resource = await session.resource(type);
    const shown = subresource === undefined ? '' : `/${subresource}`;
    const list = byGroup.get(resource.group) ?? [];
    byGroup.set(resource.group, [...list, resource.resource + shown]);
  }
  const resourceNames = words(session, 'resource-name');
  return [...byGroup].map(([group, resources]) => ({
    apiGroups: [group],
    ...(resourceNames.length === 0 ? {} : { resourceNames }),
    resources,
    verbs,
  }));
}

async function roleOf(session: Session, kind: string, metadata: JsonObject): Promise<JsonObject> {
  const verbs = words(session, 'verb');
  if (verbs.length === 0) throw new CliError('at least one verb must be specified');
  const urls = words(session, 'non-resource-url');
  const rules: JsonObject[] = await resourceRules(session, verbs);
  if (urls.length > 0) rules.push({ nonResourceURLs: urls, verbs });
  if (rules.length === 0) throw new CliError('at least one resource must be specified');
  return { apiVersion: `${await rbacGroup(session)}/v1`, kind, metadata, rules };
}

function subjectsOf(session: Session, apiGroup: string): JsonObject[] {
  const named = (kind: string, flag: string) =>
    words(session, flag).map((name) => ({ apiGroup, kind, name }));
  const accounts = words(session, 'serviceaccount').map((one) => {
    const [namespace, name, ...more] = one.split(':');
    if (!namespace || !name || more.length > 0) {
      throw new CliError('serviceaccount must be <namespace>:<name>');
    }
    return { kind: 'ServiceAccount', name, namespace };
  });
  return [...named('User', 'user'), ...named('Group', 'group'), ...accounts];
}

async function bindingOf(
  session: Session,
  options: { kind: string; metadata: JsonObject },
): Promise<JsonObject> {
  const apiGroup = await rbacGroup(session);
  const clusterRole = session.flags.text('clusterrole');
  const role = session.flags.text('role');
  if ((clusterRole === undefined) === (role === undefined)) {
    throw new CliError('exactly one of clusterrole or role must be specified');
  }
  const roleRef =
    role === undefined
      ? { apiGroup, kind: 'ClusterRole', name: clusterRole }
      : { apiGroup, kind: 'Role', name: role };
  const subjects = subjectsOf(session, apiGroup);
  return {
    apiVersion: `${apiGroup}/v1`,
    kind: options.kind,
    metadata: options.metadata,
    roleRef,
    ...(subjects.length === 0 ? {} : { subjects }),
  };
}

/** `create role`, `clusterrole`, `rolebinding` and `clusterrolebinding`. */
export const createRbacCommands: readonly Command[] = [
  {
    name: 'role',
    summary: 'Create a role with single rule',
    usage: 'NAME --verb=VERB --resource=TYPE',
    flags: roleFlags,
    async run(session, args) {
      const metadata = metadataIn(session, onlyName(args));
      return createObject(session, await roleOf(session, 'Role', metadata));
    },
  },
  {
    name: 'clusterrole',
    summary: 'Create a cluster role',
    usage: 'NAME --verb=VERB --resource=TYPE',
    flags: [
      ...roleFlags,
      { name: 'non-resource-url', type: 'list', help: 'Paths the rule applies to' },
    ],
    async run(session, args) {
      const metadata = { name: onlyName(args) };
      return createObject(session, await roleOf(session, 'ClusterRole', metadata));
    },
  },
  {
    name: 'rolebinding',
    summary: 'Create a role binding for a particular role or cluster role',
    usage: 'NAME --clusterrole=NAME|--role=NAME [--user=…] [--group=…] [--serviceaccount=NS:NAME]',
    flags: [...bindingFlags, { name: 'role', type: 'text', help: 'The Role to refer to' }],
    async run(session, args) {
      const metadata = metadataIn(session, onlyName(args));
      return createObject(session, await bindingOf(session, { kind: 'RoleBinding', metadata }));
    },
  },
  {
    name: 'clusterrolebinding',
    summary: 'Create a cluster role binding for a particular cluster role',
    usage: 'NAME --clusterrole=NAME [--user=…] [--group=…] [--serviceaccount=NS:NAME]',
    flags: bindingFlags,
    async run(session, args) {
      const kind = 'ClusterRoleBinding';
      const metadata = { name: onlyName(args) };
      return createObject(session, await bindingOf(session, { kind, metadata }));
    },
  },
];
