import { fromStorage, textAt, toStorage } from '@wheelhouse/kinds';
import {
  type ApiObject,
  aggregateText,
  asApiObject,
  badRequest,
  boundedList,
  compareText,
  type FieldError,
  formatTime,
  invalid,
  invalidObject,
  isObject,
  itemAt,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  jsonObject,
  member,
  objectOf,
  runAtPace,
  setMember,
  stringsOf,
  type UserInfo,
} from '@wheelhouse/machinery';
import { sendUnstored } from '../../answer/respond.ts';
import type { RulesForUser } from '../../gates/authz/rbac/rbac-authorizer.ts';
import { checkPathAgreement } from '../../registry/object-meta.ts';
import type { Attributes } from '../../registry/permit.ts';
import { groupKindOf } from '../../registry/registry.ts';
import { bodyPace } from '../../request/request-state.ts';
import { objectSteps, readWrite } from '../body/decode-object.ts';
import { recordFields, virtualAdmission } from '../body/virtual-body.ts';
import type { ApiCall } from '../call.ts';
import { reviewSelectors, validateReviewSelectors } from './review-selectors.ts';

/** Answers a review. Calls `admit`, for validating admission, when the review is valid. */
type Review = (call: ApiCall, object: ApiObject, admit: () => Promise<void>) => Promise<JsonObject>;

const reviews: Readonly<Record<string, Review>> = {
  SelfSubjectAccessReview: (call, object, admit) =>
    accessReview(call, object, { user: call.user, admit }),
  SubjectAccessReview: (call, object, admit) =>
    accessReview(call, object, { user: 'named', admit }),
  LocalSubjectAccessReview: (call, object, admit) =>
    accessReview(call, object, { user: 'named', admit }),
  SelfSubjectRulesReview: rulesReview,
  SelfSubjectReview: identityReview,
  TokenReview: tokenReview,
};

/** POST of a review: 201 with the answer in its status (API-6, AUTHZ-8). */
export async function reviewEndpoint(call: ApiCall): Promise<void> {
  const { def } = call.target;
  const review = reviews[def.kind];
  if (review === undefined) throw new Error(`no endpoint answers ${def.kind}`);
  const { body, options } = await readWrite(call);
  const pace = bodyPace(call, body.size);
  const { fieldValidation } = options;
  const decoded = runAtPace(objectSteps(call, { body, fieldValidation }), pace);
  const object = decoded instanceof Promise ? await decoded : decoded;
  checkPathAgreement(call.target, object);
  await recordFields(call, { object, options, pace });
  await pace?.pause();
  const admission = virtualAdmission(call, { object, options });
  await admission.mutate();
  await pace?.pause();
  const { version } = call.target;
  const answer = await review(call, toStorage(def, version, object), async () => {
    await admission.validate();
    await pace?.pause();
  });
  const shown = fromStorage(def, version, asApiObject(answer));
  await pace?.pause();
  await sendUnstored(call, { status: 201, object: shown });
}

async function accessReview(
  call: ApiCall,
  object: ApiObject,
  { user, admit }: { user: UserInfo | 'named'; admit: () => Promise<void> },
): Promise<JsonObject> {
  const spec = objectOf(member(object, 'spec'));
  if (call.context.reviews.selectors === 'omitted') {
    const resource = objectOf(member(spec, 'resourceAttributes'));
    delete resource['fieldSelector'];
    delete resource['labelSelector'];
  }
  refuseInvalid(call, [
    ...validateAccess(spec, { named: user === 'named' }),
    ...validateReviewSelectors(objectOf(member(spec, 'resourceAttributes'))),
    ...validatePlace(call, object, spec),
  ]);
  await admit();
  const plain = attributesOf(spec, user === 'named' ? userOf(spec) : user);
  const selectors = reviewSelectors(objectOf(member(spec, 'resourceAttributes')));
  const attributes = { ...plain, ...selectors.attributes };
  const { decision, reason, error } = await call.context.reviews.decide(attributes);
  const problems = [...(error === undefined ? [] : [error]), ...selectors.problems];
  const status: JsonObject = {
    allowed: decision === 'allow',
    ...(decision === 'deny' ? { denied: true } : {}),
    ...(reason === '' ? {} : { reason }),
    ...(problems.length === 0 ? {} : { evaluationError: problems.join('; ') }),
  };
  return { ...object, status };
}

function validateAccess(spec: JsonObject, { named }: { named: boolean }): FieldError[] {
  const resource = member(spec, 'resourceAttributes') ?? null;
  const path = member(spec, 'nonResourceAttributes') ?? null;
  const errors: FieldError[] = [];
  if (resource !== null && path !== null) {
    const why = 'cannot be specified in combination with resourceAttributes';
    errors.push(invalidPath(path, why));
  }
  if (resource === null && path === null) {
    const why = 'exactly one of nonResourceAttributes or resourceAttributes must be specified';
    errors.push(invalid('spec.resourceAttributes', null, why));
  }
  if (named && textAt(spec, 'user') === '' && stringsAt(spec, 'groups').length === 0) {
    errors.push(invalid('spec.user', '', 'at least one of user or group must be specified'));
  }
  return errors;
}

/** The non-resource attributes of a review, as Go prints them. */
function invalidPath(value: JsonValue, why: string): FieldError {
  const field = 'spec.nonResourceAttributes';
  const attributes = objectOf(value);
  const [path, verb] = ['path', 'verb'].map((name) => JSON.stringify(textAt(attributes, name)));
  const shown = `authorization.NonResourceAttributes{Path:${path}, Verb:${verb}}`;
  return { type: 'FieldValueInvalid', field, message: `Invalid value: ${shown}: ${why}` };
}

/** Validates a review: no name or labels; a local one concerns only its namespace, and no paths. */
function validatePlace(call: ApiCall, object: ApiObject, spec: JsonObject): FieldError[] {
  const { managedFields: _managed, namespace: _namespace, ...rest } = object.metadata;
  const isLocal = call.target.def.scope === 'Namespaced';
  const errors: FieldError[] = [];
  const path = member(spec, 'nonResourceAttributes') ?? null;
  const resource = member(spec, 'resourceAttributes') ?? null;
  const reviewedNamespace = textAt(objectOf(member(spec, 'resourceAttributes')), 'namespace');
  if (!jsonEqual(withoutNulls(jsonObject(rest)), {})) {
    const why = isLocal ? 'must be empty except for namespace' : 'must be empty';
    errors.push(invalid('metadata', jsonObject(rest), why));
  }
  if (isLocal && resource !== null && reviewedNamespace !== call.target.namespace) {
    const why = 'must match metadata.namespace';
    errors.push(invalid('spec.resourceAttributes.namespace', reviewedNamespace, why));
  }
  if (isLocal && path !== null) {
    const why = 'disallowed on this kind of request';
    errors.push(invalidPath(path, why));
  }
  return errors;
}

function withoutNulls(metadata: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(metadata).filter(([, value]) => value !== null && value !== ''),
  );
}

function refuseInvalid(call: ApiCall, errors: readonly FieldError[]): void {
  // kube-apiserver omits the kind here.
  const { group } = groupKindOf(call.target.def);
  if (errors.length > 0) throw invalidObject({ group, kind: '' }, '', errors);
}

function attributesOf(spec: JsonObject, user: UserInfo): Attributes {
  const resource = objectOf(member(spec, 'resourceAttributes'));
  const path = objectOf(member(spec, 'nonResourceAttributes'));
  const isResourceRequest = isObject(member(spec, 'resourceAttributes'));
  return {
    user,
    isResourceRequest,
    verb: textAt(isResourceRequest ? resource : path, 'verb'),
    group: textAt(resource, 'group'),
    // A review without a version concerns all versions.
    version: isResourceRequest ? textAt(resource, 'version') || '*' : '',
    resource: textAt(resource, 'resource'),
    subresource: textAt(resource, 'subresource'),
    namespace: textAt(resource, 'namespace'),
    name: textAt(resource, 'name'),
    path: textAt(path, 'path'),
  };
}

function userOf(spec: JsonObject): UserInfo {
  const extra: Record<string, readonly string[]> = Object.create(null);
  for (const [name, values] of Object.entries(objectOf(member(spec, 'extra'))))
    extra[name] = stringsOf(values);
  return {
    name: textAt(spec, 'user'),
    uid: textAt(spec, 'uid'),
    groups: stringsAt(spec, 'groups'),
    extra,
  };
}

/** The answer of a SelfSubjectRulesReview, whose spec is empty. */
async function rulesReview(
  call: ApiCall,
  object: ApiObject,
  admit: () => Promise<void>,
): Promise<JsonObject> {
  const namespace = textAt(objectOf(member(object, 'spec')), 'namespace');
  if (namespace === '') throw badRequest('no namespace on request');
  await admit();
  const found = await call.context.reviews.rulesFor(call.user, namespace);
  const { rules, errors, extent } = boundedRules(found);
  const lists = (named: Record<string, readonly string[]>): JsonObject =>
    Object.fromEntries(
      Object.entries(named).flatMap(([name, values]) =>
        values.length === 0 ? [] : [[name, [...values]]],
      ),
    );
  const resourceRules = rules
    .filter((rule) => rule.resources.length > 0)
    .map(({ verbs, apiGroups, resources, resourceNames }) =>
      lists({ verbs, apiGroups, resources, resourceNames }),
    );
  const nonResourceRules = rules
    .filter((rule) => rule.nonResourceURLs.length > 0)
    .map(({ verbs, nonResourceURLs }) => lists({ verbs, nonResourceURLs }));
  return {
    apiVersion: object.apiVersion,
    kind: object.kind,
    metadata: { creationTimestamp: null },
    spec: {},
    status: {
      resourceRules,
      nonResourceRules,
      incomplete: extent === 'partial',
      ...(errors.length === 0 ? {} : { evaluationError: aggregateText(errors) }),
    },
  };
}

/** Maximum number of values in the rules of one review (TRUST-3). */
const reviewedValuesMax = 100_000;

/** Bounds the rules of a user to what one answer may contain; an error reports the omitted ones. */
function boundedRules({ rules, errors, extent }: RulesForUser): RulesForUser {
  let values = 0;
  let kept = 0;
  while (kept < rules.length) {
    const rule = itemAt(rules, kept);
    const lists = [rule.verbs, rule.apiGroups, rule.resources];
    lists.push(rule.resourceNames, rule.nonResourceURLs);
    values += lists.reduce((sum, list) => sum + list.length, 0);
    if (values > reviewedValuesMax) break;
    kept += 1;
  }
  const listed = boundedList(errors, (error) => error);
  const more = listed.omitted === 0 ? [] : [`${listed.omitted} more errors`];
  if (kept < rules.length) more.push(`${rules.length - kept} more rules are not listed`);
  return {
    rules: rules.slice(0, kept),
    errors: [...listed.items, ...more],
    extent: kept < rules.length ? 'partial' : extent,
  };
}

async function tokenReview(
  call: ApiCall,
  object: ApiObject,
  admit: () => Promise<void>,
): Promise<JsonObject> {
  const spec = objectOf(member(object, 'spec'));
  const token = textAt(spec, 'token');
  if (token === '') throw badRequest('token is required for TokenReview in authentication');
  await admit();
  const audiences = stringsAt(spec, 'audiences');
  const { verdict, error } = await call.context.reviews.reviewToken(token, audiences);
  const status: JsonObject =
    verdict === undefined
      ? { user: {}, error }
      : { authenticated: true, user: shownUser(verdict.user), audiences: [...verdict.audiences] };
  return { ...object, status };
}

async function identityReview(
  call: ApiCall,
  object: ApiObject,
  admit: () => Promise<void>,
): Promise<JsonObject> {
  await admit();
  return {
    apiVersion: object.apiVersion,
    kind: object.kind,
    metadata: { creationTimestamp: formatTime(call.context.clock.now()) },
    status: { userInfo: shownUser(call.user) },
  };
}

function shownUser({ name, uid, groups, extra }: UserInfo): JsonObject {
  const shownExtra: JsonObject = {};
  for (const key of Object.keys(extra).sort(compareText)) {
    setMember(shownExtra, key, [...(extra[key] ?? [])]);
  }
  return {
    username: name,
    ...(uid === '' ? {} : { uid }),
    ...(groups.length === 0 ? {} : { groups: [...groups] }),
    ...(Object.keys(shownExtra).length === 0 ? {} : { extra: shownExtra }),
  };
}

function stringsAt(object: JsonObject, name: string): readonly string[] {
  return stringsOf(member(object, name));
}
