import { loadExpressionChecker, loadRuleChecker, loadRuleRunner } from '@wheelhouse/cel';
import type { DefaultJudge, ExpressionChecker, RuleChecker, RuleCompiler } from '@wheelhouse/kinds';
import type { AdmissionPlugin } from '../admission/chain.ts';

interface Engine {
  readonly checkRules: RuleChecker;
  readonly judgeDefault: DefaultJudge;
  readonly compileRules: RuleCompiler;
  readonly checkExpression: ExpressionChecker;
}

/** Code, not state: one for all servers of the process. */
let loaded: Engine | undefined;
let loading: Promise<void> | undefined;

async function load(): Promise<void> {
  const [{ checkRules }, { compileRules, judgeDefault }, { expressionProblem }] = await Promise.all(
    [loadRuleChecker(), loadRuleRunner(), loadExpressionChecker()],
  );
  loaded = { checkRules, judgeDefault, compileRules, checkExpression: expressionProblem };
}

function engine(): Engine {
  if (loaded === undefined) throw new Error('rules are judged before their engine is loaded');
  return loaded;
}

const kindsWithRules = new Set([
  'CustomResourceDefinition',
  'MutatingAdmissionPolicy',
  'MutatingWebhookConfiguration',
  'ValidatingAdmissionPolicy',
  'ValidatingWebhookConfiguration',
]);

/**
 * Loads the engine of CEL rules before the first write that needs it, so that a start does not wait
 * for it: validation itself cannot wait.
 */
export const ruleEngineLoader: AdmissionPlugin = {
  name: 'RuleEngineLoader',
  isInternal: true,
  mutate: ({ target: { def }, operation }) => {
    if (loaded !== undefined || operation === 'DELETE') return undefined;
    if (def.custom === undefined && !kindsWithRules.has(def.kind)) return undefined;
    loading ??= load();
    return loading;
  },
};

/** Judges an expression of a webhook or policy. */
export const checkExpression: ExpressionChecker = (source, use) =>
  engine().checkExpression(source, use);

/** Judges the rules of a definition. */
export const checkRules: RuleChecker = (at) => engine().checkRules(at);

/** Judges defaults by the rules of a definition. */
export const judgeDefault: DefaultJudge = (schema, value, at) =>
  engine().judgeDefault(schema, value, at);

/** Makes the validator of a version's rules, once it is needed. */
export const compileRules: RuleCompiler = (schema) => {
  let run: ReturnType<RuleCompiler>;
  return (object, old, warn) => {
    run ??= engine().compileRules(schema);
    return run?.(object, old, warn) ?? [];
  };
};
