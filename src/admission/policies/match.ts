import type { AdmissionCall } from '../../registry/contract.ts';
import { equivalentsOf, type RequestFacts } from '../matching/facts.ts';
import { matchesRule, type OperationRule } from '../matching/rules.ts';
import { selectsNamespace, selectsObject } from '../matching/selectors.ts';
import type { Served } from '../matching/versioned.ts';
import type { AdmissionTools } from '../tools.ts';
import type { MatchResources } from './definition.ts';

/** A request on its way through policies. */
export interface Judging {
  readonly call: AdmissionCall;
  readonly facts: RequestFacts;
  readonly tools: AdmissionTools;
}

/**
 * The form in which a request matches: the served version that the rules name; undefined where it
 * does not match. Throws 404 when its namespace is gone.
 */
export async function matchedForm(match: MatchResources, at: Judging): Promise<Served | undefined> {
  const { call, facts, tools } = at;
  if (!selectsObject(match.objectSelector, call)) return undefined;
  if (formBy(match.excluded, match, at) !== undefined) return undefined;
  const form = match.rules.length === 0 ? call.target : formBy(match.rules, match, at);
  if (form === undefined) return undefined;
  const { objects } = tools;
  const isSelected = await selectsNamespace(match.namespaceSelector, { call, facts, objects });
  return isSelected ? form : undefined;
}

function formBy(
  rules: readonly OperationRule[],
  { matchPolicy }: MatchResources,
  { call, facts, tools }: Judging,
): Served | undefined {
  if (rules.some((rule) => matchesRule(rule, facts))) return call.target;
  if (rules.length === 0 || matchPolicy === 'Exact') return undefined;
  const equivalents = equivalentsOf(tools.snapshot(), call.target);
  for (const rule of rules) {
    const found = equivalents.find(({ resource }) => matchesRule(rule, facts, resource));
    if (found !== undefined) return found;
  }
  return undefined;
}
