import { formByRules, type Judging } from '../matching/form.ts';
import { selectsNamespace, selectsObject } from '../matching/selectors.ts';
import type { Served } from '../matching/versioned.ts';
import type { MatchResources } from './definition.ts';

/**
 * The form in which a request matches: the served version that the rules name; undefined where it
 * does not match. Throws 404 when its namespace is gone.
 */
export async function matchedForm(match: MatchResources, at: Judging): Promise<Served | undefined> {
  const { call, facts, tools } = at;
  if (!selectsObject(match.objectSelector, call)) return undefined;
  if (formByRules(match.excluded, match.matchPolicy, at) !== undefined) return undefined;
  const form =
    match.rules.length === 0 ? call.target : formByRules(match.rules, match.matchPolicy, at);
  if (form === undefined) return undefined;
  const { objects } = tools;
  const isSelected = await selectsNamespace(match.namespaceSelector, { call, facts, objects });
  return isSelected ? form : undefined;
}
