import { structType, textType, truthType } from '@wheelhouse/codec';
import {
  isObject,
  type JsonObject,
  type LabelOperator,
  member,
  setMember,
  type UserInfo,
  webhookBody,
} from '@wheelhouse/machinery';
import { decodeTyped } from '@wheelhouse/schema';
import type { AccessReviewVersion } from './authorizer-types.ts';
import type { Attributes } from './contract.ts';

/** What a webhook says of a request. */
export interface AccessReviewStatus {
  readonly allowed: boolean;
  readonly denied: boolean;
  readonly reason: string;
}

/**
 * The spec of a v1 SubjectAccessReview about a request, members in upstream's order and empty ones
 * left out, so that equal requests have equal texts.
 */
export function accessReviewSpec(
  attributes: Attributes,
  options: { readonly selectors: 'told' | 'left out' },
): JsonObject {
  const { user, path, verb } = attributes;
  const about = attributes.isResourceRequest
    ? { resourceAttributes: resourceAttributes(attributes, options.selectors) }
    : { nonResourceAttributes: nonEmpty({ path, verb }) };
  const extra = extraOf(user);
  return {
    ...about,
    ...nonEmpty({ user: user.name }),
    ...(user.groups.length === 0 ? {} : { groups: [...user.groups] }),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
    ...nonEmpty({ uid: user.uid }),
  };
}

function nonEmpty(members: Readonly<Record<string, string>>): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== ''));
}

function resourceAttributes(attributes: Attributes, selectors: 'told' | 'left out'): JsonObject {
  const { namespace, verb, group, version, resource, subresource, name } = attributes;
  const plain = nonEmpty({ namespace, verb, group, version, resource, subresource, name });
  if (selectors === 'left out') return plain;
  const fields = fieldRequirements(attributes);
  const labels = labelRequirements(attributes);
  return {
    ...plain,
    ...(fields.length === 0 ? {} : { fieldSelector: { requirements: fields } }),
    ...(labels.length === 0 ? {} : { labelSelector: { requirements: labels } }),
  };
}

function fieldRequirements({ fieldSelector = [] }: Attributes): JsonObject[] {
  return fieldSelector.map(({ label, operator, value }) => ({
    key: label,
    operator: operator === '=' ? 'In' : 'NotIn',
    values: [value],
  }));
}

const operators: Readonly<Partial<Record<LabelOperator, string>>> = {
  '=': 'In',
  '==': 'In',
  in: 'In',
  '!=': 'NotIn',
  notin: 'NotIn',
  exists: 'Exists',
  '!': 'DoesNotExist',
};

/** Comparisons of size have no word in reviews; leaving a condition out only widens what is asked. */
function labelRequirements({ labelSelector = [] }: Attributes): JsonObject[] {
  return labelSelector.flatMap(({ key, operator, values }) => {
    const word = operators[operator];
    if (word === undefined) return [];
    return [{ key, operator: word, ...(values.length === 0 ? {} : { values: [...values] }) }];
  });
}

/** In order of names, as upstream's encoder writes maps. */
function extraOf({ extra }: UserInfo): JsonObject {
  const sorted: JsonObject = {};
  for (const name of Object.keys(extra).sort()) setMember(sorted, name, [...(extra[name] ?? [])]);
  return sorted;
}

/** The body posted to a webhook; the older version has another name for the groups. */
export function accessReviewBody(
  spec: JsonObject,
  review: { readonly apiVersion: string; readonly version: AccessReviewVersion },
): string {
  return webhookBody({
    kind: 'SubjectAccessReview',
    apiVersion: review.apiVersion,
    metadata: { creationTimestamp: null },
    spec: review.version === 'v1' ? spec : withOldGroups(spec),
    status: { allowed: false },
  });
}

function withOldGroups(spec: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(spec).map(([name, value]) => [name === 'groups' ? 'group' : name, value]),
  );
}

const reviewType = structType('SubjectAccessReview', {
  apiVersion: textType,
  kind: textType,
  status: structType('SubjectAccessReviewStatus', {
    allowed: truthType,
    denied: truthType,
    reason: textType,
    evaluationError: textType,
  }),
});

/** The status of an answer; throws when it is no review of that version, or malformed. */
export function readAccessReview(answer: JsonObject, apiVersion: string): AccessReviewStatus {
  const review = decodeTyped(reviewType)(answer);
  const shownVersion = review['apiVersion'] || apiVersion;
  const kind = review['kind'] || 'SubjectAccessReview';
  if (shownVersion !== apiVersion || kind !== 'SubjectAccessReview') {
    throw new Error(`it is a ${kind} of ${shownVersion}, no SubjectAccessReview of ${apiVersion}`);
  }
  const found = member(review, 'status');
  const status = isObject(found) ? found : {};
  const { reason } = status;
  return {
    allowed: status['allowed'] === true,
    denied: status['denied'] === true,
    reason: typeof reason === 'string' ? reason : '',
  };
}
