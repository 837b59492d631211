import type { AdmissionCall } from '../../registry/contract.ts';
import type { AdmissionTools } from '../tools.ts';
import { equivalentsOf, type RequestFacts } from './facts.ts';
import { matchesRule, type OperationRule } from './rules.ts';
import type { Served } from './versioned.ts';

/** A request as webhooks and policies look at it. */
export interface Judging {
  readonly call: AdmissionCall;
  readonly facts: RequestFacts;
  readonly tools: AdmissionTools;
}

/**
 * The served form by which rules match a request: its own, or, where equivalent ones count, another
 * resource or version of the same objects. Earlier rules come first. Undefined: none matches.
 */
export function formByRules(
  rules: readonly OperationRule[],
  matchPolicy: 'Exact' | 'Equivalent',
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
