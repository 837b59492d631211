import type { UserInfo } from '@wheelhouse/machinery';
import type { FlowInfo } from './contract.ts';
import type { ResourceRule, RuleSettings, SubjectSettings, UrlRule } from './settings.ts';

/** Whether a request is of those that a rule speaks of, once it is known that its user is. */
export interface RequestMatcher {
  matches(info: FlowInfo): boolean;
  /** `all`: every request there can be. */
  readonly scope: 'all' | 'some';
}

/** All requests that the rules about this user speak of; undefined where none is about them. */
export function matcherFor(
  rules: readonly RuleSettings[],
  user: UserInfo,
): RequestMatcher | undefined {
  const own = rules.filter(({ subjects }) => subjects.some((one) => isSubject(one, user)));
  if (own.length === 0) return undefined;
  const resources = own.flatMap(({ resourceRules }) => resourceRules);
  const urls = own.flatMap(({ urlRules }) => urlRules);
  const allResources = resources.some(isEveryResource);
  const allUrls = urls.some((rule) => isStar(rule.verbs) && rule.urls.includes('*'));
  return {
    scope: allResources && allUrls ? 'all' : 'some',
    matches(info) {
      if (info.isResourceRequest) {
        return allResources || resources.some((rule) => matchesResource(rule, info));
      }
      return allUrls || urls.some((rule) => matchesUrl(rule, info));
    },
  };
}

function isStar(list: readonly string[]): boolean {
  return list.length === 1 && list[0] === '*';
}

function includes(list: readonly string[], wanted: string): boolean {
  return isStar(list) || list.includes(wanted);
}

function isEveryResource(rule: ResourceRule): boolean {
  const { verbs, apiGroups, resources, namespaces, clusterScope } = rule;
  return clusterScope && [verbs, apiGroups, resources, namespaces].every(isStar);
}

const accountPrefix = 'system:serviceaccount:';

function isSubject({ kind, name, namespace }: SubjectSettings, user: UserInfo): boolean {
  switch (kind) {
    case 'User':
      return name === '*' || name === user.name;
    case 'Group':
      return name === '*' || user.groups.includes(name);
    case 'ServiceAccount': {
      const ofNamespace = `${accountPrefix}${namespace}:`;
      return name === '*'
        ? user.name.startsWith(ofNamespace)
        : user.name === `${ofNamespace}${name}`;
    }
    default:
      return false;
  }
}

function matchesResource(rule: ResourceRule, info: FlowInfo): boolean {
  if (!includes(rule.verbs, info.verb) || !includes(rule.apiGroups, info.group)) return false;
  const { resource, subresource, namespace } = info;
  const wanted = subresource === '' ? resource : `${resource}/${subresource}`;
  if (!includes(rule.resources, wanted)) return false;
  return namespace === '' ? rule.clusterScope : includes(rule.namespaces, namespace);
}

/** A URL stands for what is below it too, whether it ends in a star or not. */
function matchesUrl({ verbs, urls }: UrlRule, { verb, path }: FlowInfo): boolean {
  if (!includes(verbs, verb)) return false;
  return urls.some((url) => {
    if (url === '*' || url === path) return true;
    const stem = url.endsWith('*') ? url.slice(0, -1) : url;
    return path.startsWith(stem.endsWith('/') ? stem : `${stem}/`);
  });
}
