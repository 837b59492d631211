import type { Dialect, JsonObject } from '@wheelhouse/machinery/browser';
import type { Api } from './api.ts';
import { objectOf, objectsOf, textOf, textsOf } from './failure.ts';
import type { Kind } from './kinds.ts';
import { grants, type ResourceRule, ruleOf } from './rules.ts';

/** Who somebody is to the server. */
export interface Subject {
  readonly user: string;
  readonly groups: readonly string[];
}

/** Who the server takes the user for. Rejects as the API does. */
export async function whoAmI(api: Api, dialect: Dialect): Promise<Subject> {
  const group = dialect.group('authentication');
  const review = await api.json({
    method: 'POST',
    path: `/apis/${group}/v1/selfsubjectreviews`,
    body: { apiVersion: `${group}/v1`, kind: 'SelfSubjectReview' },
  });
  const info = objectOf(objectOf(review, 'status'), 'userInfo');
  return { user: textOf(info, 'username'), groups: textsOf(info, 'groups') };
}

/** One thing that somebody may or may not do. */
export interface Attempt {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  /** Empty: the thing itself. */
  readonly subresource: string;
  /** Empty: everywhere, or a kind without namespaces. */
  readonly namespace: string;
  /** Empty: any. */
  readonly name: string;
}

/** What the server says of an attempt. */
export interface Verdict {
  readonly isAllowed: boolean;
  /** Said no outright, so that no other authorizer is asked. */
  readonly isDenied: boolean;
  readonly reason: string;
  readonly evaluationError: string;
}

/**
 * Asks whether the user may do something, or somebody else (which not everybody may ask). Rejects as
 * the API does: 403 for whoever may not ask about others.
 */
export async function canI(
  api: Api,
  options: { readonly dialect: Dialect; readonly attempt: Attempt; readonly subject?: Subject },
): Promise<Verdict> {
  const { dialect, attempt, subject } = options;
  const authorization = dialect.group('authorization');
  const [resource, kind] =
    subject === undefined
      ? ['selfsubjectaccessreviews', 'SelfSubjectAccessReview']
      : ['subjectaccessreviews', 'SubjectAccessReview'];
  const review = await api.json({
    method: 'POST',
    path: `/apis/${authorization}/v1/${resource}`,
    body: {
      apiVersion: `${authorization}/v1`,
      kind,
      spec: {
        resourceAttributes: nonEmptyMembers({ ...attempt }),
        ...(subject === undefined ? {} : { user: subject.user, groups: [...subject.groups] }),
      },
    },
  });
  const status = objectOf(review, 'status');
  return {
    isAllowed: status.allowed === true,
    isDenied: status.denied === true,
    reason: textOf(status, 'reason'),
    evaluationError: textOf(status, 'evaluationError'),
  };
}

function nonEmptyMembers(members: Record<string, string>): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== ''));
}

/** What the user may do in a namespace, by its rules. */
export interface OwnRules {
  readonly rules: readonly ResourceRule[];
  /** Paths that are no resources, and with which verbs. */
  readonly paths: readonly { readonly path: string; readonly verbs: readonly string[] }[];
  /** An authorizer cannot list its rules: there may be more than these. */
  readonly isIncomplete: boolean;
  readonly evaluationError: string;
}

/** The user's rules in a namespace. Rejects as the API does. */
export async function ownRules(
  api: Api,
  { dialect, namespace }: { readonly dialect: Dialect; readonly namespace: string },
): Promise<OwnRules> {
  const authorization = dialect.group('authorization');
  const review = await api.json({
    method: 'POST',
    path: `/apis/${authorization}/v1/selfsubjectrulesreviews`,
    body: {
      apiVersion: `${authorization}/v1`,
      kind: 'SelfSubjectRulesReview',
      spec: { namespace },
    },
  });
  const status = objectOf(review, 'status');
  return {
    rules: objectsOf(status, 'resourceRules').map(ruleOf),
    paths: objectsOf(status, 'nonResourceRules').flatMap((rule) =>
      textsOf(rule, 'nonResourceURLs').map((path) => ({ path, verbs: textsOf(rule, 'verbs') })),
    ),
    isIncomplete: status.incomplete === true,
    evaluationError: textOf(status, 'evaluationError'),
  };
}

/** The verbs of a matrix, in the order people think of them. */
export const matrixVerbs = [
  ...['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'],
] as const;

/** A cell of the matrix: allowed, allowed for some names, not allowed, or not a verb of the kind. */
export type MatrixCell =
  | { readonly kind: 'yes' | 'no' | 'none' }
  | { readonly kind: 'named'; readonly names: readonly string[] };

/** What may be done with one kind, or with a subresource of it. */
export interface MatrixRow {
  readonly kind: Kind;
  /** Empty for the kind itself. */
  readonly subresource: string;
  /** In the order of `matrixVerbs`. */
  readonly cells: readonly MatrixCell[];
}

/** All kinds against all verbs, by a set of rules. */
export function accessMatrix(
  kinds: readonly Kind[],
  rules: readonly ResourceRule[],
  options: { readonly subresources: 'shown' | 'hidden' },
): MatrixRow[] {
  return kinds
    .filter(({ preferred }) => preferred)
    .flatMap((kind) => [
      matrixRow(rules, { kind, subresource: '', verbs: kind.verbs }),
      ...(options.subresources === 'hidden' ? [] : kind.subresources).map(({ name, verbs }) =>
        matrixRow(rules, { kind, subresource: name, verbs }),
      ),
    ]);
}

function matrixRow(
  rules: readonly ResourceRule[],
  of: { readonly kind: Kind; readonly subresource: string; readonly verbs: readonly string[] },
): MatrixRow {
  const { kind, subresource, verbs } = of;
  const { group, resource } = kind;
  const cells = matrixVerbs.map((verb): MatrixCell => {
    if (!verbs.includes(verb)) return { kind: 'none' };
    const found = rules.filter((rule) => grants(rule, { verb, group, resource, subresource }));
    if (found.length === 0) return { kind: 'no' };
    if (found.some(({ names }) => names.length === 0)) return { kind: 'yes' };
    return { kind: 'named', names: [...new Set(found.flatMap(({ names }) => names))].sort() };
  });
  return { kind, subresource, cells };
}
