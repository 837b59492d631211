import {
  type AccessAnswer,
  type AccessCosts,
  type AskAccess,
  authorizerValue,
  CelError,
  compileExpression,
  EvaluationPaused,
  type ExpressionUse,
  jsonToValue,
  type Measured,
  type Program,
  requestResourceName,
  resourceCheckValue,
  type Value,
} from '@wheelhouse/cel';
import {
  type ApiObject,
  type JsonObject,
  parseFieldSelector,
  parseLabelSelector,
  type UserInfo,
} from '@wheelhouse/machinery';
import type { RequestFacts } from '../matching/facts.ts';
import type { AdmissionTools } from '../tools.ts';

/** What expressions about a request are given. */
export interface ExpressionInputs {
  readonly object: ApiObject | undefined;
  readonly old: ApiObject | undefined;
  /** `request`: an AdmissionRequest without its objects. */
  readonly request: JsonObject;
  readonly namespaceObject?: JsonObject | undefined;
  readonly params?: JsonObject | undefined;
  readonly user: UserInfo;
  readonly facts: RequestFacts;
}

/** What one evaluation may cost. */
export const callCostMax = 1_000_000;

/**
 * The variables of expressions about a request; the policy's own are not among them.
 * @param options.costs whether authorization has costs of its own, as it has from release 1.32 on
 */
export function requestVariables(
  inputs: ExpressionInputs,
  tools: Pick<AdmissionTools, 'authorize'>,
  { costs }: { readonly costs: AccessCosts } = { costs: 'counted' },
): Map<string, Value> {
  const plain = (json: JsonObject | undefined) =>
    json === undefined ? null : jsonToValue(json, {});
  const ask = askerFor(inputs.user, tools);
  const { resource, subresource, namespace, name } = inputs.facts;
  const at = { group: resource.group, resource: resource.resource, subresource, namespace, name };
  return new Map<string, Value>([
    ['object', plain(inputs.object)],
    ['oldObject', plain(inputs.old)],
    ['request', plain(inputs.request)],
    // Its times are declared as such, and are the texts they are in objects all the same.
    ['namespaceObject', plain(inputs.namespaceObject)],
    ['params', plain(inputs.params)],
    ['authorizer', authorizerValue(ask, costs)],
    [requestResourceName, resourceCheckValue(ask, at, costs)],
  ]);
}

function askerFor(user: UserInfo, tools: Pick<AdmissionTools, 'authorize'>): AskAccess {
  return ({ user: account, path, fieldSelector, labelSelector, ...question }) => {
    const who = account === undefined ? user : serviceAccountUser(account);
    const selectors = readSelectors({ fieldSelector, labelSelector });
    const answer = tools.authorize({
      ...question,
      ...(path === undefined ? selectors : {}),
      user: who,
      isResourceRequest: path === undefined,
      version: path === undefined ? '*' : '',
      path: path ?? '',
    });
    const read = ({ decision, reason, error = '' }: Awaited<typeof answer>): AccessAnswer => ({
      allowed: decision === 'allow',
      reason,
      error,
    });
    return answer instanceof Promise ? answer.then(read) : read(answer);
  };
}

function serviceAccountUser(name: string): UserInfo {
  const namespace = name.split(':')[2] ?? '';
  // It did not log in: nothing of what all who did may do is its own.
  const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`];
  return { name, uid: '', groups, extra: {} };
}

/** A selector that does not parse restricts nothing, so it is the same as no selector. */
function readSelectors(selectors: { fieldSelector: string; labelSelector: string }) {
  const { fieldSelector, labelSelector } = selectors;
  return {
    ...(fieldSelector === '' ? {} : { fieldSelector: readable(fieldSelector, parseFieldSelector) }),
    ...(labelSelector === ''
      ? {}
      : {
          labelSelector: readable(labelSelector, (text) => parseLabelSelector(text).requirements),
        }),
  };
}

function readable<T>(text: string, parse: (text: string) => readonly T[]): readonly T[] {
  try {
    return parse(text);
  } catch {
    return [];
  }
}

/** Makes an expression's program, or says why it has none. */
export function programOf(
  source: string,
  use: ExpressionUse,
): Program | { readonly problem: string } {
  const compiled = compileExpression(source, use);
  if ('problem' in compiled) return compiled;
  try {
    return compiled.program();
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    return { problem: `program instantiation failed: ${error.message}` };
  }
}

/** The expressions of one webhook or policy have cost more than they may all together. */
export class OutOfBudget extends Error {
  constructor() {
    super(
      'validation failed due to running out of cost budget, no further validation rules will be run',
    );
  }
}

/** What the expressions of one run may still cost. */
export class Budget {
  #left: number;

  constructor(left: number) {
    this.#left = left;
  }

  /** Throws `OutOfBudget`. */
  spend(cost: number): void {
    if (cost > this.#left) throw new OutOfBudget();
    this.#left -= cost;
  }
}

/** How often an evaluation may wait for an answer; each asks something new. */
const pausesMax = 1000;

/** What is worked out on the way, at a cost of its own. */
interface Costly {
  takeCost(): number;
}

/** Runs a program, waiting for authorization where it asks. Throws `OutOfBudget`. */
export async function runExpression(
  program: Program,
  variables: ReadonlyMap<string, Value>,
  { budget, own }: { readonly budget: Budget; readonly own?: Costly | undefined },
): Promise<Measured> {
  for (let pauses = 0; ; pauses += 1) {
    try {
      const measured = program.measure(variables, callCostMax);
      budget.spend(own?.takeCost() ?? 0);
      budget.spend(measured.cost);
      return measured;
    } catch (error) {
      if (!(error instanceof EvaluationPaused) || pauses === pausesMax) throw error;
      await error.answer;
    }
  }
}
