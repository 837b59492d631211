import type { ApiResource, RestMapper } from '@wheelhouse/client';
import type { Dialect, JsonObject } from '@wheelhouse/machinery';
import { CliError } from '../io.ts';
import { serverDialect } from '../server-dialect.ts';
import type { Session } from '../session.ts';

/** Values of a flag that takes several at once, joined with commas, each once. */
export function commaWords(session: Session, flag: string): string[] {
  return [...new Set(session.flags.list(flag).flatMap((one) => one.split(',')))].filter(
    (one) => one !== '',
  );
}

/** What `--resource` asks for: `TYPE[.GROUP][/SUBRESOURCE]`. */
interface WantedResource {
  readonly resource: string;
  readonly group: string;
  readonly subresource: string;
}

/** The verbs of the rule; a star stands for all others. */
export function verbsOf(session: Session): string[] {
  const verbs = commaWords(session, 'verb');
  return verbs.includes('*') ? ['*'] : verbs;
}

const resourceVerbs: ReadonlySet<string> = new Set([
  ...['*', 'get', 'delete', 'list', 'create', 'update', 'patch', 'watch', 'proxy'],
  ...['deletecollection', 'use', 'bind', 'escalate', 'impersonate'],
]);

/** Verbs that mean something for some resources only. */
function specialVerbs(dialect: Dialect): Readonly<Record<string, readonly string[]>> {
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
 * The rules for `--resource`, `--resource-name` and the verbs: one a group, in the order of the
 * groups. Throws CliError for a resource the server does not have, unless a verb is all about it.
 */
export async function resourceRules(
  session: Session,
  verbs: readonly string[],
): Promise<JsonObject[]> {
  const wanted = commaWords(session, 'resource').map(parseResource);
  if (wanted.some(({ resource }) => resource === '')) {
    throw new CliError('resource must be specified if apiGroup/subresource specified');
  }
  for (const verb of verbs) {
    if (wanted.length > 0 && !resourceVerbs.has(verb)) {
      session.io.err(`Warning: '${verb}' is not a standard resource verb\n`);
    }
  }
  if (wanted.length === 0) return [];
  const mapper = await session.mapper();
  const special = specialVerbs(await serverDialect(session));
  for (const one of wanted) checkResource(mapper, one, { verbs, special });
  return rulesByGroup(session, { mapper, wanted, verbs });
}

function parseResource(word: string): WantedResource {
  const slash = word.indexOf('/');
  const type = slash < 0 ? word : word.slice(0, slash);
  const [resource = '', ...group] = type.split('.');
  return {
    resource,
    group: group.join('.'),
    subresource: slash < 0 ? '' : word.slice(slash + 1),
  };
}

function find(mapper: RestMapper, wanted: WantedResource): ApiResource | undefined {
  const { resource, group } = wanted;
  if (resource === '*') return undefined;
  return mapper.byName(group === '' ? resource : `${resource}.${group}`);
}

function checkResource(
  mapper: RestMapper,
  wanted: WantedResource,
  { verbs, special }: { verbs: readonly string[]; special: Record<string, readonly string[]> },
): void {
  if (wanted.resource === '*') return;
  const found = find(mapper, wanted);
  const { resource, group } = found ?? wanted;
  const shown = group === '' ? resource : `${resource}.${group}`;
  let isSpecial = false;
  for (const verb of verbs) {
    const allowed = Object.hasOwn(special, verb) ? special[verb] : undefined;
    if (allowed === undefined) continue;
    if (!allowed.includes(shown)) {
      throw new CliError(`can not perform '${verb}' on '${resource}' in group '${group}'`);
    }
    isSpecial = true;
  }
  if (found === undefined && !isSpecial) {
    throw new CliError(`the server doesn't have a resource type ${JSON.stringify(shown)}`);
  }
}

function rulesByGroup(
  session: Session,
  options: { mapper: RestMapper; wanted: readonly WantedResource[]; verbs: readonly string[] },
): JsonObject[] {
  const { mapper, wanted, verbs } = options;
  const byGroup = new Map<string, string[]>();
  for (const one of wanted) {
    const { resource, group } = find(mapper, one) ?? one;
    const shown = one.subresource === '' ? resource : `${resource}/${one.subresource}`;
    byGroup.set(group, [...(byGroup.get(group) ?? []), shown]);
  }
  const resourceNames = [...new Set(session.flags.list('resource-name'))];
  return [...byGroup]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([group, resources]) => ({
      apiGroups: [group],
      ...(resourceNames.length === 0 ? {} : { resourceNames }),
      resources,
      verbs: [...verbs],
    }));
}

const pathVerbs: ReadonlySet<string> = new Set([
  ...['*', 'get', 'post', 'put', 'delete', 'patch', 'head', 'options'],
]);

/** The rule for `--non-resource-url`, if any. Throws CliError for what no path can be. */
export function pathRules(session: Session, verbs: readonly string[]): JsonObject[] {
  const nonResourceURLs = commaWords(session, 'non-resource-url');
  if (nonResourceURLs.length === 0) return [];
  const wrong = verbs.find((verb) => !pathVerbs.has(verb));
  if (wrong !== undefined) throw new CliError(`invalid verb: '${wrong}' for nonResourceURL`);
  for (const url of nonResourceURLs.filter((one) => one !== '*')) {
    if (!url.startsWith('/')) throw new CliError('nonResourceURL should start with /');
    if (url.slice(0, -1).includes('*')) {
      throw new CliError("nonResourceURL only supports wildcard matches when '*' is at the end");
    }
  }
  return [{ nonResourceURLs, verbs: [...verbs] }];
}
