import type { ResourceDef, StrategyContext } from '@wheelhouse/kinds';
import {
  type ApiObject,
  type FieldError,
  invalidObject,
  type MetaJudgement,
  type MetaRules,
  validateObjectMeta,
  validateObjectMetaUpdate,
} from '@wheelhouse/machinery';
import type { Target } from './contract.ts';
import { groupKindOf } from './registry.ts';

const asChange: readonly MetaJudgement[] = ['change'];

function metaRules({ scope, strategy }: ResourceDef, subresource: string): MetaRules {
  return {
    namespaced: scope === 'Namespaced',
    validateName: strategy.validateName,
    path: 'metadata',
    judgements: strategy.metadataTold?.[subresource] ?? asChange,
    ...(strategy.standardFinalizers === undefined
      ? {}
      : { standardFinalizers: strategy.standardFinalizers }),
  };
}

/** Metadata rules, then the kind's own; 422 naming all that is wrong. */
export function validateNew(target: Target, context: StrategyContext, object: ApiObject): void {
  const { strategy } = target.def;
  const own = strategy.validateCreate?.(context, object) ?? [];
  if (strategy.judgesBeforeMetadata === true) refuseInvalid(target, object, own);
  const errors = [...validateObjectMeta(object.metadata, metaRules(target.def, '')), ...own];
  refuseInvalid(target, object, errors);
}

export function validateChange(
  target: Target,
  context: StrategyContext,
  change: { object: ApiObject; old: ApiObject },
): void {
  const { object, old } = change;
  const { strategy } = target.def;
  const errors: FieldError[] = [
    ...validateObjectMetaUpdate(
      object.metadata,
      old.metadata,
      metaRules(target.def, context.subresource),
    ),
    ...(strategy.validateUpdate?.(context, object, old) ?? []),
  ];
  refuseInvalid(target, object, errors);
}

function refuseInvalid(target: Target, object: ApiObject, errors: readonly FieldError[]): void {
  if (errors.length === 0) return;
  const { kind, group } = groupKindOf(target.def);
  const told = { kind, group: target.def.strategy.toldGroup ?? group };
  throw invalidObject(told, object.metadata.name ?? '', errors);
}
