import { decodeJson, structType, textType, truthType } from '@wheelhouse/codec';
import { matchesUrl, type PolicyRule, policyRule } from '@wheelhouse/kinds';
import {
  type Dialect,
  errorText,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  parseApiVersion,
  problemText,
  type UserInfo,
} from '@wheelhouse/machinery';
import { decodeTyped } from '@wheelhouse/schema';
import type { Attributes, AuthorizationResult } from '../../../registry/permit.ts';
import type { Authorizer } from '../authorization.ts';

/** An authorizer with a fixed list of policies. */
interface AbacAuthorizer extends Authorizer {
  /** All rules that apply to the user in the namespace. */
  rulesFor(user: UserInfo, namespace: string): readonly PolicyRule[];
}

/** Creates an authorizer that allows requests that match a policy of an ABAC file (AUTHZ-2). */
export function createAbacAuthorizer(policies: readonly AbacPolicy[]): AbacAuthorizer {
  const allowed: AuthorizationResult = { decision: 'allow', reason: '' };
  const noOpinion: AuthorizationResult = { decision: 'no-opinion', reason: 'No policy matched.' };
  return {
    name: 'ABAC',
    authorize: (attributes) =>
      policies.some((policy) => matches(policy, attributes)) ? allowed : noOpinion,
    rulesFor: (user, namespace) =>
      policies
        .filter(
          (policy) => appliesToUser(policy, user) && matchesValue(policy.namespace, namespace),
        )
        .flatMap(rulesOf),
  };
}

const readVerbs = ['get', 'list', 'watch'];

function matches(policy: AbacPolicy, attributes: Attributes): boolean {
  if (!appliesToUser(policy, attributes.user)) return false;
  if (policy.readonly && !readVerbs.includes(attributes.verb)) return false;
  if (!attributes.isResourceRequest) return matchesUrl(policy.nonResourcePath, attributes.path);
  return (
    matchesValue(policy.namespace, attributes.namespace) &&
    matchesValue(policy.resource, attributes.resource) &&
    matchesValue(policy.apiGroup, attributes.group)
  );
}

/**
 * Whether a policy names the user: both its user and its group must match, and at least one must be
 * set.
 */
function appliesToUser({ user, group }: AbacPolicy, requester: UserInfo): boolean {
  if (user !== '' && user !== '*' && user !== requester.name) return false;
  if (group !== '' && group !== '*' && !requester.groups.includes(group)) return false;
  return user !== '' || group !== '';
}

function matchesValue(pattern: string, actual: string): boolean {
  return pattern === '*' || pattern === actual;
}

function rulesOf(policy: AbacPolicy): PolicyRule[] {
  const verbs = policy.readonly ? readVerbs : ['*'];
  const rules: PolicyRule[] = [];
  if (policy.resource !== '') {
    const [apiGroups, resources] = [[policy.apiGroup], [policy.resource]];
    rules.push(policyRule({ verbs, apiGroups, resources }));
  }
  if (policy.nonResourcePath !== '') {
    rules.push(policyRule({ verbs, nonResourceURLs: [policy.nonResourcePath] }));
  }
  return rules;
}

/** One rule of an ABAC policy file (AUTHZ-2); empty members match nothing. */
export interface AbacPolicy {
  /** `*`: any user. */
  readonly user: string;
  readonly group: string;
  /** Whether only get, list, and watch are allowed. */
  readonly readonly: boolean;
  readonly apiGroup: string;
  readonly resource: string;
  readonly namespace: string;
  /** `*`: any path; a trailing star matches any suffix. */
  readonly nonResourcePath: string;
}

/** An invalid policy file; the message names the file and the line with its text. */
export class AbacPolicyError extends Error {}

const authenticated = 'system:authenticated';
/** Longest line, as in Go's line scanner. */
const lineBytesMax = 64 * 1024;

/**
 * Parses a policy file: one JSON object per line, in the versioned or the old unversioned form;
 * blank lines and lines that start with `#` are skipped. `warn` is called if there are unversioned
 * rules. Throws AbacPolicyError for the first invalid line.
 */
export function parseAbacPolicies(options: {
  readonly file: string;
  readonly text: string;
  readonly dialect: Dialect;
  readonly warn: (message: string) => void;
}): readonly AbacPolicy[] {
  const { file, text, dialect, warn } = options;
  const policies: AbacPolicy[] = [];
  let hasUnversioned = false;
  for (const [index, line] of linesOf(text, file).entries()) {
    const trimmed = line.trim();
    if (trimmed === '' || trimmed.startsWith('#')) continue;
    try {
      const { policy, form } = readPolicy(line, dialect);
      hasUnversioned ||= form === 'old';
      policies.push(policy);
    } catch (error) {
      const why = errorText(error);
      throw new AbacPolicyError(
        `error reading policy file ${file}, line ${index + 1}: ${line}: ${why}`,
      );
    }
  }
  if (hasUnversioned) warn(`Policy file ${file} contained unversioned rules.`);
  return policies;
}

function linesOf(text: string, file: string): string[] {
  const lines = text.split('\n').map((line) => line.replace(/\r$/, ''));
  if (lines.some((line) => Buffer.byteLength(line) >= lineBytesMax)) {
    throw new AbacPolicyError(`error reading policy file ${file}: bufio.Scanner: token too long`);
  }
  return lines;
}

const specMembers = {
  user: textType,
  group: textType,
  readonly: truthType,
  apiGroup: textType,
  resource: textType,
  namespace: textType,
  nonResourcePath: textType,
};
const meta = { apiVersion: textType, kind: textType };
const versionedType = structType('Policy', {
  ...meta,
  spec: structType('PolicySpec', specMembers),
});
const { user, group, readonly, resource, namespace } = specMembers;
const oldType = structType('Policy', { ...meta, user, group, readonly, resource, namespace });

/** Parses a line, in the old form if it has no apiVersion or one of an unknown group. */
function readPolicy(
  line: string,
  dialect: Dialect,
): { readonly policy: AbacPolicy; readonly form: 'versioned' | 'old' } {
  const { value } = decodeJson(Buffer.from(line));
  if (!isObject(value)) throw new Error('not a JSON object');
  const apiVersion = metaText(value, 'apiVersion');
  const kind = metaText(value, 'kind');
  const group = `abac.authorization.${dialect.labelDomain}`;
  const groupVersion = apiVersion === '' ? undefined : parseApiVersion(apiVersion);
  if (apiVersion !== '' && groupVersion === undefined) {
    throw new Error(`unexpected GroupVersion string: ${apiVersion}`);
  }
  const version =
    groupVersion === undefined ? 'v0' : groupVersion.group === group ? groupVersion.version : '';
  if ((version !== 'v0' && version !== 'v1beta1') || (kind !== '' && kind !== 'Policy')) {
    const [shown, shownVersion] = [kind || 'Policy', apiVersion || `${group}/v0`];
    throw new Error(
      `no kind ${JSON.stringify(shown)} is registered for version ${JSON.stringify(shownVersion)}`,
    );
  }
  if (version === 'v0') {
    const form = apiVersion === '' || kind === '' ? 'old' : 'versioned';
    return { policy: fromOldForm(decodeTyped(oldType)(value)), form };
  }
  if (kind === '') throw new Error(`Object 'Kind' is missing in '${line}'`);
  const spec = member(decodeTyped(versionedType)(value), 'spec');
  return { policy: fromVersioned(isObject(spec) ? spec : {}), form: 'versioned' };
}

function metaText(value: JsonObject, name: string): string {
  const memberValue: JsonValue = member(value, name) ?? '';
  if (typeof memberValue === 'string') return memberValue;
  throw new Error(problemText({ code: 'no type', why: `.${name} is not a string` }));
}

function fromVersioned(spec: JsonObject): AbacPolicy {
  const policy = policyOf(spec);
  return policy.user === '*' || policy.group === '*'
    ? { ...policy, user: '', group: authenticated }
    : policy;
}

/**
 * Converts the old form, in which an empty field matches everything, for authenticated users only.
 */
function fromOldForm(fields: JsonObject): AbacPolicy {
  const policy = policyOf(fields);
  const isAnyUser =
    policy.user === '*' || policy.group === '*' || (policy.user === '' && policy.group === '');
  const isBooleanSchema = policy.namespace === '' && policy.resource === '';
  return {
    ...policy,
    ...(isAnyUser ? { user: '', group: authenticated } : {}),
    namespace: policy.namespace || '*',
    resource: policy.resource || '*',
    apiGroup: '*',
    nonResourcePath: isBooleanSchema ? '*' : '',
  };
}

function policyOf(fields: JsonObject): AbacPolicy {
  const text = (name: string): string => {
    const value = member(fields, name);
    return typeof value === 'string' ? value : '';
  };
  return {
    user: text('user'),
    group: text('group'),
    readonly: member(fields, 'readonly') === true,
    apiGroup: text('apiGroup'),
    resource: text('resource'),
    namespace: text('namespace'),
    nonResourcePath: text('nonResourcePath'),
  };
}
