import { type ApiResource, type RestMapper, resourcePath } from '@wheelhouse/client';
import { cut, type Dialect, type JsonObject, setMember } from '@wheelhouse/machinery';
import type { Command } from '../../command.ts';
import {
  createFlags,
  createObject,
  newMetadata,
  postObject,
  requireName,
} from '../../create-object.ts';
import { NoResourceError } from '../../errors.ts';
import type { FlagSpec } from '../../flags.ts';
import { CliError } from '../../io.ts';
import { textAt, withGroup } from '../../objects.ts';
import { outputFlags, printerOf } from '../../output/output.ts';
import type { Session } from '../../session.ts';

const serviceAccountCommand: Command = {
  name: 'serviceaccount',
  aliases: ['sa'],
  summary: 'Create a service account with the specified name',
  usage: 'NAME',
  flags: createFlags,
  run: (session, args) =>
    createObject(
      session,
      {
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: newMetadata(session, requireName(session, args)),
      },
      { errorPrefix: 'failed to create serviceaccount:' },
    ),
};

const tokenCommand: Command = {
  name: 'token',
  summary: 'Request a service account token',
  usage: 'SERVICE_ACCOUNT_NAME',
  flags: [
    ...outputFlags,
    { name: 'audience', type: 'list', help: 'Audience of the token; repeatable' },
    { name: 'duration', type: 'duration', help: 'Lifetime of the token, such as 1h' },
    { name: 'bound-object-kind', type: 'text', help: 'Kind of the object to bind the token to' },
    { name: 'bound-object-name', type: 'text', help: 'Name of the object to bind the token to' },
    { name: 'bound-object-uid', type: 'text', help: 'UID of the object to bind the token to' },
  ],
  async run(session, args) {
    const name = requireName(session, args);
    const spec = tokenSpec(session);
    const dialect = await session.dialect();
    const accounts = await session.resourceOfKind('ServiceAccount');
    const object = await postObject(session, {
      path: resourcePath(accounts, { namespace: session.namespace, name, subresource: 'token' }),
      body: {
        apiVersion: `${dialect.group('authentication')}/v1`,
        kind: 'TokenRequest',
        spec,
      },
      errorPrefix: 'failed to create token:',
    });
    const printer = printerOf(session);
    const token = textAt(object, 'status', 'token');
    if (token === '') throw new CliError('failed to create token: no token in server response');
    const end = session.io.outIsTerminal === true ? '\n' : '';
    session.io.out(printer === undefined ? token + end : printer(object));
    return 0;
  },
};

function tokenSpec(session: Session): JsonObject {
  const audiences = [...session.flags.list('audience')];
  if (audiences.includes('')) throw new CliError('--audience must not be an empty string');
  const durationMs = session.flags.durationMs('duration') ?? 0;
  if (durationMs < 0) throw new CliError('--duration must be greater than or equal to 0');
  if (durationMs % 1000 !== 0) {
    throw new CliError('--duration cannot be expressed in units less than seconds');
  }
  const boundObjectRef = boundObject(session);
  return {
    audiences,
    ...(durationMs === 0 ? {} : { expirationSeconds: durationMs / 1000 }),
    ...(boundObjectRef === undefined ? {} : { boundObjectRef }),
  };
}

const boundKinds = ['Node', 'Pod', 'Secret'];

function boundObject({ flags }: Session): JsonObject | undefined {
  const [kind = '', name = '', uid = ''] = ['kind', 'name', 'uid'].map((part) =>
    flags.text(`bound-object-${part}`),
  );
  if (kind === '') {
    const orphan = name !== '' ? 'name' : 'uid';
    if (name === '' && uid === '') return undefined;
    throw new CliError(
      `--bound-object-${orphan} can only be set if --bound-object-kind is provided`,
    );
  }
  if (!boundKinds.includes(kind)) {
    throw new CliError(`supported --bound-object-kind values are ${boundKinds.join(', ')}`);
  }
  if (name === '') {
    throw new CliError('--bound-object-name is required if --bound-object-kind is provided');
  }
  return { kind, apiVersion: 'v1', name, ...(uid === '' ? {} : { uid }) };
}

/** `create serviceaccount` and `create token`. */
export const createAccountCommands: readonly Command[] = [serviceAccountCommand, tokenCommand];

/** The distinct, nonempty values of a flag, each split at its commas. */
function distinctWords(session: Session, flag: string): string[] {
  return [...new Set(session.flags.list(flag))].filter((word) => word !== '');
}

/** A resource of `--resource`: `TYPE[.GROUP][/SUBRESOURCE]`. */
interface RuleResource {
  readonly resource: string;
  readonly group: string;
  readonly subresource: string;
}

/** The verbs of `--verb`; `*` replaces all others. */
function parseVerbs(session: Session): string[] {
  const verbs = distinctWords(session, 'verb');
  return verbs.includes('*') ? ['*'] : verbs;
}

const resourceVerbs: ReadonlySet<string> = new Set([
  ...['*', 'get', 'delete', 'list', 'create', 'update', 'patch', 'watch', 'proxy'],
  ...['deletecollection', 'use', 'bind', 'escalate', 'impersonate'],
]);

/** Verbs that apply only to certain resources. */
function restrictedVerbs(dialect: Dialect): Readonly<Record<string, readonly string[]>> {
  const rbac = dialect.group('rbac.authorization');
  const roles = [`roles.${rbac}`, `clusterroles.${rbac}`];
  return {
    use: ['podsecuritypolicies.policy', 'podsecuritypolicies.extensions'],
    bind: roles,
    escalate: roles,
    impersonate: [
      ...['users', 'serviceaccounts', 'groups'],
      `userextras.${dialect.group('authentication')}`,
    ],
  };
}

/**
 * Creates the rules for `--resource`, `--resource-name`, and the verbs, one per group in order of
 * the groups. Rejects with CliError for a resource that the server does not serve, unless a
 * restricted verb applies to it.
 */
async function resourceRules(session: Session, verbs: readonly string[]): Promise<JsonObject[]> {
  const words = distinctWords(session, 'resource');
  // All resources in the core group include the others.
  const requested = (words.includes('*') ? ['*'] : words).map(parseResource);
  if (requested.some(({ resource }) => resource === '')) {
    throw new CliError('resource must be specified if apiGroup/subresource specified');
  }
  for (const verb of verbs) {
    if (requested.length > 0 && !resourceVerbs.has(verb)) {
      session.io.err(`Warning: '${verb}' is not a standard resource verb\n`);
    }
  }
  if (requested.length === 0) return [];
  const mapper = await session.mapper();
  const restricted = restrictedVerbs(await session.dialect());
  for (const wanted of requested) checkResource(mapper, wanted, { verbs, restricted });
  return rulesByGroup(session, { mapper, requested, verbs });
}

function parseResource(word: string): RuleResource {
  const [type, subresource = ''] = cut(word, '/');
  const [resource, group = ''] = cut(type, '.');
  return { resource, group, subresource };
}

function findResource(mapper: RestMapper, requested: RuleResource): ApiResource | undefined {
  const { resource, group } = requested;
  if (resource === '*') return undefined;
  return mapper.byName(withGroup(resource, group));
}

function checkResource(
  mapper: RestMapper,
  requested: RuleResource,
  {
    verbs,
    restricted,
  }: { verbs: readonly string[]; restricted: Record<string, readonly string[]> },
): void {
  if (requested.resource === '*') return;
  const found = findResource(mapper, requested);
  const { resource, group } = found ?? requested;
  const label = withGroup(resource, group);
  let isRestricted = false;
  for (const verb of verbs) {
    const allowed = Object.hasOwn(restricted, verb) ? restricted[verb] : undefined;
    if (allowed === undefined) continue;
    if (!allowed.includes(label)) {
      throw new CliError(`can not perform '${verb}' on '${resource}' in group '${group}'`);
    }
    isRestricted = true;
  }
  if (found === undefined && !isRestricted) throw new NoResourceError(requested);
}

function rulesByGroup(
  session: Session,
  options: { mapper: RestMapper; requested: readonly RuleResource[]; verbs: readonly string[] },
): JsonObject[] {
  const { mapper, requested, verbs } = options;
  const byGroup = new Map<string, Set<string>>();
  for (const wanted of requested) {
    const { resource, group } = findResource(mapper, wanted) ?? wanted;
    const label = wanted.subresource === '' ? resource : `${resource}/${wanted.subresource}`;
    byGroup.set(group, (byGroup.get(group) ?? new Set()).add(label));
  }
  const resourceNames = [...new Set(session.flags.list('resource-name'))];
  return [...byGroup]
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([group, resources]) => ({
      apiGroups: [group],
      ...(resourceNames.length === 0 ? {} : { resourceNames }),
      resources: [...resources],
      verbs: [...verbs],
    }));
}

const pathVerbs: ReadonlySet<string> = new Set([
  ...['*', 'get', 'post', 'put', 'delete', 'patch', 'head', 'options'],
]);

/** Creates the rule for `--non-resource-url`, if any. Throws CliError for a malformed path. */
function pathRules(session: Session, verbs: readonly string[]): JsonObject[] {
  const nonResourceURLs = distinctWords(session, 'non-resource-url');
  if (nonResourceURLs.length === 0) return [];
  const wrong = verbs.find((verb) => !pathVerbs.has(verb));
  if (wrong !== undefined) throw new CliError(`invalid verb: '${wrong}' for nonResourceURL`);
  for (const url of nonResourceURLs.filter((candidate) => candidate !== '*')) {
    if (!url.startsWith('/')) throw new CliError('nonResourceURL should start with /');
    if (url.slice(0, -1).includes('*')) {
      throw new CliError("nonResourceURL only supports wildcard matches when '*' is at the end");
    }
  }
  return [{ nonResourceURLs, verbs: [...verbs] }];
}

const roleFlags: readonly FlagSpec[] = [
  ...createFlags,
  { name: 'verb', type: 'items', help: 'Verbs of the rule' },
  {
    name: 'resource',
    type: 'items',
    help: 'Resources that the rule applies to: TYPE[.GROUP][/SUB]',
  },
  { name: 'resource-name', type: 'list', help: 'Names to which the rule is restricted' },
];

const bindingFlags: readonly FlagSpec[] = [
  ...createFlags,
  { name: 'clusterrole', type: 'text', help: 'The ClusterRole to refer to' },
  { name: 'user', type: 'list', help: 'Users to bind' },
  { name: 'group', type: 'list', help: 'Groups to bind' },
  { name: 'serviceaccount', type: 'list', help: 'Service accounts to bind: NAMESPACE:NAME' },
];

/** The API group of the RBAC kinds on this server. */
async function rbacGroup(session: Session): Promise<string> {
  return (await session.resourceOfKind('ClusterRole')).group;
}

async function createRole(
  session: Session,
  { kind, metadata, errorMessage }: { kind: string; metadata: JsonObject; errorMessage: string },
): Promise<JsonObject> {
  const verbs = parseVerbs(session);
  if (verbs.length === 0) throw new CliError('at least one verb must be specified');
  const hasResources = distinctWords(session, 'resource').length > 0;
  if (!hasResources && distinctWords(session, 'non-resource-url').length === 0)
    throw new CliError(errorMessage);
  const rules = [...(await resourceRules(session, verbs)), ...pathRules(session, verbs)];
  return { apiVersion: `${await rbacGroup(session)}/v1`, kind, metadata, rules };
}

/** Creates a role that aggregates the rules of roles with certain labels. */
async function createAggregatedRole(session: Session, metadata: JsonObject): Promise<JsonObject> {
  const others = ['verb', 'resource', 'resource-name', 'non-resource-url'];
  if (others.some((flag) => session.flags.list(flag).length > 0)) {
    throw new CliError(
      'aggregation rule must be specified without nonResourceURLs, verbs, resources ' +
        'or resourceNames',
    );
  }
  const matchLabels: JsonObject = {};
  for (const pair of session.flags.list('aggregation-rule')) {
    const [key = '', ...value] = pair.split('=');
    setMember(matchLabels, key.trim(), value.join('=').trim());
  }
  return {
    aggregationRule: { clusterRoleSelectors: [{ matchLabels }] },
    apiVersion: `${await rbacGroup(session)}/v1`,
    kind: 'ClusterRole',
    metadata,
    rules: null,
  };
}

function parseSubjects(session: Session, apiGroup: string): JsonObject[] {
  const subjects = (kind: string, flag: string) =>
    session.flags.list(flag).map((name) => ({ apiGroup, kind, name }));
  const accounts = session.flags.list('serviceaccount').map((account) => {
    const [namespace, name, ...more] = account.split(':');
    if (!namespace || !name || more.length > 0) {
      throw new CliError('serviceaccount must be <namespace>:<name>');
    }
    return { kind: 'ServiceAccount', name, namespace };
  });
  return [...subjects('User', 'user'), ...subjects('Group', 'group'), ...accounts];
}

async function createBinding(
  session: Session,
  options: { kind: string; metadata: JsonObject },
): Promise<JsonObject> {
  const clusterRole = session.flags.text('clusterrole') ?? '';
  const role = session.flags.text('role') ?? '';
  if ((clusterRole === '') === (role === '')) {
    throw new CliError('exactly one of clusterrole or role must be specified');
  }
  const apiGroup = await rbacGroup(session);
  const roleRef =
    role === ''
      ? { apiGroup, kind: 'ClusterRole', name: clusterRole }
      : { apiGroup, kind: 'Role', name: role };
  const subjects = parseSubjects(session, apiGroup);
  return {
    apiVersion: `${apiGroup}/v1`,
    kind: options.kind,
    metadata: options.metadata,
    roleRef,
    ...(subjects.length === 0 ? {} : { subjects }),
  };
}

const roleCommand: Command = {
  name: 'role',
  summary: 'Create a role with a single rule',
  usage: 'NAME --verb=VERB --resource=TYPE',
  flags: roleFlags,
  async run(session, args) {
    const metadata = newMetadata(session, requireName(session, args));
    const errorMessage = 'at least one resource must be specified';
    return createObject(
      session,
      await createRole(session, { kind: 'Role', metadata, errorMessage }),
    );
  },
};

const clusterRoleCommand: Command = {
  name: 'clusterrole',
  summary: 'Create a cluster role',
  usage: 'NAME --verb=VERB --resource=TYPE',
  flags: [
    ...roleFlags,
    { name: 'non-resource-url', type: 'items', help: 'Paths that the rule applies to' },
    { name: 'aggregation-rule', type: 'labels', help: 'KEY=VALUE labels of roles to aggregate' },
  ],
  async run(session, args) {
    const metadata = { name: requireName(session, args) };
    const errorMessage = 'one of resource or nonResourceURL must be specified';
    const role =
      session.flags.list('aggregation-rule').length > 0
        ? await createAggregatedRole(session, metadata)
        : await createRole(session, { kind: 'ClusterRole', metadata, errorMessage });
    return createObject(session, role);
  },
};

const roleBindingCommand: Command = {
  name: 'rolebinding',
  summary: 'Create a role binding for a particular role or cluster role',
  usage: 'NAME --clusterrole=NAME|--role=NAME [--user=…] [--group=…] [--serviceaccount=NS:NAME]',
  flags: [...bindingFlags, { name: 'role', type: 'text', help: 'The Role to refer to' }],
  async run(session, args) {
    const metadata = newMetadata(session, requireName(session, args));
    const binding = await createBinding(session, { kind: 'RoleBinding', metadata });
    return createObject(session, binding, { errorPrefix: 'failed to create rolebinding:' });
  },
};

const clusterRoleBindingCommand: Command = {
  name: 'clusterrolebinding',
  summary: 'Create a cluster role binding for a particular cluster role',
  usage: 'NAME --clusterrole=NAME [--user=…] [--group=…] [--serviceaccount=NS:NAME]',
  flags: bindingFlags,
  async run(session, args) {
    if (!session.flags.has('clusterrole')) {
      throw new CliError('required flag(s) "clusterrole" not set');
    }
    const metadata = { name: requireName(session, args) };
    const binding = await createBinding(session, { kind: 'ClusterRoleBinding', metadata });
    return createObject(session, binding, { errorPrefix: 'failed to create clusterrolebinding:' });
  },
};

/** `create role`, `clusterrole`, `rolebinding`, and `clusterrolebinding`. */
export const createRbacCommands: readonly Command[] = [
  roleCommand,
  clusterRoleCommand,
  roleBindingCommand,
  clusterRoleBindingCommand,
];
