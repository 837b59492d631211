import { type FieldError, invalidGo, type JsonObject } from '@wheelhouse/machinery';
import { listAt } from '../cells.ts';
import type { NodeSelectorTerm, PodSpec } from '../gen/types/core/v1.ts';
import { same, sameOrEmpty } from '../rules/checks.ts';
import { objectsAt } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';
import { goNodeSelectorTerm, goStringMap, goStructs } from './go-text.ts';

/** While gates keep a pod from being put anywhere, the nodes it may go to may be narrowed. */

const must = 'requiredDuringSchedulingIgnoredDuringExecution';
const termsPath = `spec.affinity.nodeAffinity.${must}.nodeSelectorTerms`;

/** Complains of a change that does more than narrow. */
export function validateNodeSelection(spec: Stored<PodSpec>, old: Stored<PodSpec>): FieldError[] {
  const before = old.nodeSelector ?? {};
  const now = spec.nodeSelector;
  const isNarrowed = Object.keys(before).every((key) => now?.[key] === before[key]);
  const detail = 'only additions to spec.nodeSelector are allowed (no mutations or deletions)';
  return [
    ...(isNarrowed ? [] : [invalidGo('spec.nodeSelector', () => goStringMap(now), detail)]),
    ...validateTerms(termsOf(spec), termsOf(old)),
  ];
}

const termsOf = (spec: Stored<PodSpec>) =>
  objectsAt(spec, 'affinity', 'nodeAffinity', must, 'nodeSelectorTerms');

function validateTerms(terms: readonly JsonObject[], old: readonly JsonObject[]): FieldError[] {
  if (old.length === 0) return [];
  if (terms.length !== old.length) {
    const shown = goStructs('core.NodeSelectorTerm', terms, goNodeSelectorTerm);
    const detail = 'no additions/deletions to non-empty NodeSelectorTerms list are allowed';
    return [invalidGo(termsPath, () => shown, detail)];
  }
  return terms.flatMap((term, index) => {
    if (isNarrowedTerm(term, old[index] ?? {})) return [];
    const detail = 'only additions are allowed (no mutations or deletions)';
    return [invalidGo(`${termsPath}[${index}]`, () => goNodeSelectorTerm(term), detail)];
  });
}

const parts = ['matchExpressions', 'matchFields'];

/** A term without requirements selects nothing, so any that is added would widen it. */
function isNarrowedTerm(term: Stored<NodeSelectorTerm>, old: Stored<NodeSelectorTerm>): boolean {
  const isEmpty = parts.every((name) => listAt(old, name).length === 0);
  if (isEmpty) return parts.every((name) => listAt(term, name).length === 0);
  return parts.every((name) => {
    const before = listAt(old, name);
    return same([...listAt(term, name).slice(0, before.length)], [...before]);
  });
}

/** Puts back the old node affinity, so that what else changed of the affinity shows. */
export function keepNodeAffinity(spec: Stored<PodSpec>, old: Stored<PodSpec>): void {
  const before = old.affinity?.nodeAffinity;
  const affinity = spec.affinity;
  if (sameOrEmpty(affinity?.nodeAffinity, before)) return;
  if (affinity === undefined) {
    spec.affinity = { nodeAffinity: before };
    return;
  }
  const others = affinity.podAffinity !== undefined || affinity.podAntiAffinity !== undefined;
  if (old.affinity === undefined && !others) delete spec.affinity;
  else if (before === undefined) delete affinity.nodeAffinity;
  else affinity.nodeAffinity = before;
}
