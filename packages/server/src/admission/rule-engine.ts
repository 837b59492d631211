import {
  loadExpressionChecker,
  loadRuleChecker,
  loadRuleRunner,
  type RuleMeter,
} from '@wheelhouse/cel';
import type {
  DefaultValidator,
  ExpressionChecker,
  RuleChecker,
  RuleCompiler,
} from '@wheelhouse/kinds';
import type { Clock, MetricRegistry } from '@wheelhouse/machinery';
import type { Schema } from '@wheelhouse/schema';
import type { AdmissionPlugin } from './chain.ts';

interface Engine {
  readonly checkRules: RuleChecker;
  readonly validateDefault: DefaultValidator;
  readonly compileRules: (schema: Schema, meter: RuleMeter) => ReturnType<RuleCompiler>;
  readonly checkExpression: ExpressionChecker;
}

/** Code rather than state: shared by all servers of the process. */
let loaded: Engine | undefined;
let loading: Promise<void> | undefined;

async function load(): Promise<void> {
  const [{ checkRules }, { compileRules, validateDefault }, { expressionProblem }] =
    await Promise.all([loadRuleChecker(), loadRuleRunner(), loadExpressionChecker()]);
  loaded = { checkRules, validateDefault, compileRules, checkExpression: expressionProblem };
}

function engine(): Engine {
  if (loaded === undefined) throw new Error('rules are evaluated before their engine is loaded');
  return loaded;
}

const kindsWithRules = new Set([
  'CustomResourceDefinition',
  'DeviceClass',
  'MutatingAdmissionPolicy',
  'MutatingWebhookConfiguration',
  'ResourceClaim',
  'ResourceClaimTemplate',
  'ValidatingAdmissionPolicy',
  'ValidatingWebhookConfiguration',
]);

/**
 * Loads the CEL engine before the first write that needs it, so that the start does not wait for
 * it. Validation works in steps that await nothing, and cannot load it.
 */
export const ruleEngineLoader: AdmissionPlugin = {
  name: 'RuleEngineLoader',
  isInternal: true,
  concerns: ({ behavior, kind }) => behavior.hasSchemaRules || kindsWithRules.has(kind),
  mutate: ({ operation }) => {
    if (loaded !== undefined || operation === 'DELETE') return undefined;
    loading ??= load();
    return loading;
  },
};

/** Validates an expression of a webhook or policy. */
export const checkExpression: ExpressionChecker = (source, use) =>
  engine().checkExpression(source, use);

/** Validates the rules of a definition. */
export const checkRules: RuleChecker = (at) => engine().checkRules(at);

/** Validates defaults against the rules of a definition. */
export const validateDefault: DefaultValidator = (schema, value, at) =>
  engine().validateDefault(schema, value, at);

/** Creates measured validators for the rules of versions, each on first use (OPS-1). */
export function measuredRules(registry: MetricRegistry, clock: Clock): RuleCompiler {
  const meter = ruleMeter(registry, clock);
  return (schema) => {
    let run: ReturnType<RuleCompiler>;
    return function* (object, old, warn) {
      run ??= engine().compileRules(schema, meter);
      return run === undefined ? [] : yield* run(object, old, warn);
    };
  };
}

const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

function ruleMeter(registry: MetricRegistry, clock: Clock): RuleMeter {
  const histogram = (name: string, help: string) =>
    registry
      .histogram({ name: `apiserver_cel_${name}`, help, stability: 'BETA', labels: [], buckets })
      .of();
  const compilation = histogram('compilation_duration_seconds', 'CEL compilation time in seconds.');
  const evaluation = histogram('evaluation_duration_seconds', 'CEL evaluation time in seconds.');
  return {
    now: () => clock.monotonic(),
    compiled: (tookMs) => compilation.observe(tookMs / 1000),
    evaluated: (tookMs) => evaluation.observe(tookMs / 1000),
  };
}
