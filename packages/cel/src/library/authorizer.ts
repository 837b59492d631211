import { dnsLabel, dnsSubdomain, type MaybePromise } from '@wheelhouse/machinery';
import type { CallContext, Library } from '../types/functions.ts';
import { CelError, EvaluationPaused, Opaque, type Value } from '../values.ts';
import { asText, misfit } from './arguments.ts';
import { textSize } from './arithmetic.ts';

/** An authorization check by an expression. */
interface AccessQuestion {
  /** `system:serviceaccount:<namespace>:<name>`; undefined for the request's user. */
  readonly user: string | undefined;
  /** Path of a nonresource check; otherwise undefined. */
  readonly path: string | undefined;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly fieldSelector: string;
  readonly labelSelector: string;
  readonly verb: string;
}

/** A decision of authorization, or `error` if there is none. */
export interface AccessDecision {
  readonly allowed: boolean;
  readonly reason: string;
  readonly error: string;
}

/** Decides checks. A check that is not decided synchronously pauses the evaluation. */
export type CheckAccess = (question: AccessQuestion) => MaybePromise<AccessDecision>;

/** Whether checks and selectors have specific costs or that of an ordinary call. */
export type AccessCosts = 'counted' | 'waived';

/** An incomplete check and its authorizer. */
interface Draft extends AccessQuestion {
  readonly ask: CheckAccess;
  readonly costs: AccessCosts;
}

const prefix = 'kubernetes.authorization';
/** Names of the types. */
export const authorizerTypes = {
  authorizer: `${prefix}.Authorizer`,
  path: `${prefix}.PathCheck`,
  group: `${prefix}.GroupCheck`,
  resource: `${prefix}.ResourceCheck`,
  decision: `${prefix}.Decision`,
} as const;

const blank: Omit<AccessQuestion, 'path' | 'user'> = {
  group: '',
  resource: '',
  subresource: '',
  namespace: '',
  name: '',
  fieldSelector: '',
  labelSelector: '',
  verb: '',
};

/**
 * The variable `authorizer` of one evaluation. Decisions are cached, so that a paused evaluation
 * finds them when it is repeated.
 */
export function authorizerValue(ask: CheckAccess, costs: AccessCosts): Value {
  return draftValue('authorizer', {
    ...blank,
    path: undefined,
    user: undefined,
    ask: withCachedDecisions(ask),
    costs,
  });
}

/** The variable `authorizer.requestResource`. */
export function resourceCheckValue(
  ask: CheckAccess,
  at: Pick<AccessQuestion, 'group' | 'resource' | 'subresource' | 'namespace' | 'name'>,
  costs: AccessCosts,
): Value {
  const draft = {
    ...blank,
    ...at,
    path: undefined,
    user: undefined,
    ask: withCachedDecisions(ask),
    costs,
  };
  return draftValue('resource', draft);
}

function withCachedDecisions(ask: CheckAccess): CheckAccess {
  const answers = new Map<string, AccessDecision>();
  return (question) => {
    const key = JSON.stringify(questionOf(question));
    const cachedAnswer = answers.get(key);
    if (cachedAnswer !== undefined) return cachedAnswer;
    const answer = ask(question);
    const keep = (received: AccessDecision) => {
      answers.set(key, received);
      return received;
    };
    return answer instanceof Promise ? answer.then(keep) : keep(answer);
  };
}

/** Copies only the attributes of the check, since callers may pass more. */
function questionOf(question: AccessQuestion): readonly (string | undefined)[] {
  const { user, path, group, resource, subresource, namespace, name, verb } = question;
  const { fieldSelector, labelSelector } = question;
  const place = [group, resource, subresource, namespace, name];
  return [user, path, ...place, verb, fieldSelector, labelSelector];
}

class DraftValue extends Opaque<Draft> {}
class DecisionValue extends Opaque<AccessDecision> {}

function draftValue(type: keyof typeof authorizerTypes, draft: Draft): Value {
  const key = JSON.stringify(questionOf(draft));
  return new DraftValue({ type: authorizerTypes[type], value: draft, key });
}

function draftOf(value: Value | undefined): Draft {
  if (!(value instanceof DraftValue)) throw misfit(value, authorizerTypes.authorizer);
  return value.value;
}

/** A method that sets another attribute of the check. */
function adds(type: keyof typeof authorizerTypes, name: keyof AccessQuestion) {
  return ([target, value]: readonly Value[]): Value =>
    draftValue(type, { ...draftOf(target), [name]: asText(value) });
}

function asServiceAccount([target, namespace, name]: readonly Value[]): Value {
  const [first, second] = [asText(namespace), asText(name)];
  if (dnsSubdomain(second).length > 0) throw new CelError('Invalid service account name');
  if (dnsLabel(first).length > 0) throw new CelError('Invalid service account namespace');
  const user = `system:serviceaccount:${first}:${second}`;
  return draftValue('authorizer', { ...draftOf(target), user });
}

/** The cost of a check, including that of the call. */
const checkCost = 350_000;

function check([target, verb]: readonly Value[], context: CallContext): Value {
  const { ask, costs, ...question } = draftOf(target);
  if (costs === 'counted') context.spend(checkCost - 1);
  const answer = ask({ ...question, verb: asText(verb) });
  if (answer instanceof Promise) throw new EvaluationPaused(answer);
  const { allowed, reason, error } = answer;
  const key = JSON.stringify([allowed, reason, error]);
  return new DecisionValue({ type: authorizerTypes.decision, value: answer, key });
}

function pathCheck([target, path]: readonly Value[]): Value {
  if (asText(path).trim() === '') throw new CelError('path must not be empty');
  return draftValue('path', { ...draftOf(target), path: asText(path) });
}

function resourceCheck([target, resource]: readonly Value[]): Value {
  if (asText(resource).trim() === '') throw new CelError('resource must not be empty');
  return draftValue('resource', { ...draftOf(target), resource: asText(resource) });
}

/**
 * A list, plus a list in an object for each requirement, of which the shortest has two characters.
 */
const listCost = 10;
const requirementCost = 50;

/** A selector narrows the check; parsing it costs as much as its possible content. */
function selects(name: 'fieldSelector' | 'labelSelector') {
  const add = adds('resource', name);
  return (args: readonly Value[], context: CallContext): Value => {
    const length = textSize(asText(args[1]));
    const requirements = Math.ceil(length / 2);
    // The call itself is charged separately.
    const cost = listCost + Math.ceil(length * 0.1) + requirements * requirementCost - 1;
    if (draftOf(args[0]).costs === 'counted') context.spend(cost);
    return add(args);
  };
}

function answerOf(value: Value | undefined): AccessDecision {
  if (!(value instanceof DecisionValue)) throw misfit(value, authorizerTypes.decision);
  return value.value;
}
const { authorizer, path, group, resource, decision } = authorizerTypes;

/** The functions of `authorizer`, for expressions about a request. */
export const authorization: Library = [
  [`${authorizer}.path(string): ${path}`, pathCheck],
  [`${authorizer}.group(string): ${group}`, adds('group', 'group')],
  [`${authorizer}.serviceAccount(string, string): ${authorizer}`, asServiceAccount],
  [`${group}.resource(string): ${resource}`, resourceCheck],
  [`${resource}.subresource(string): ${resource}`, adds('resource', 'subresource')],
  [`${resource}.namespace(string): ${resource}`, adds('resource', 'namespace')],
  [`${resource}.name(string): ${resource}`, adds('resource', 'name')],
  [`${resource}.fieldSelector(string): ${resource}`, selects('fieldSelector')],
  [`${resource}.labelSelector(string): ${resource}`, selects('labelSelector')],
  [`${path}.check(string): ${decision}`, check],
  [`${resource}.check(string): ${decision}`, check],
  [`${decision}.allowed(): bool`, ([value]) => answerOf(value).allowed],
  [`${decision}.reason(): string`, ([value]) => answerOf(value).reason],
  [`${decision}.errored(): bool`, ([value]) => answerOf(value).error !== ''],
  [`${decision}.error(): string`, ([value]) => answerOf(value).error],
];
