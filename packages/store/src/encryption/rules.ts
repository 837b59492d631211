import { type EncryptionRule, groupResourceOf } from './configuration.ts';
import { identity, type KmsSettings, providerTransformer } from './providers.ts';
import {
  type Observed,
  type Prefixed,
  prefixTransformer,
  type Transformer,
} from './transformer.ts';

/** The transformer of a resource, named as `secrets` or `deployments.apps`. */
export type ChooseTransformer = (resource: string) => Transformer;

/**
 * The transformers of a configuration: a resource's own rule, else that of its group, else that for
 * all, else none. `observed` gives who is told of a resource's transformations, `kms` the running
 * provider of an entry that names one.
 */
export function chooseTransformers(
  rules: readonly EncryptionRule[],
  options: {
    readonly observed: (resource: string) => Observed;
    readonly kms: (settings: KmsSettings) => Prefixed;
  },
): ChooseTransformer {
  const lists = new Map<string, Prefixed[]>();
  for (const { resources, providers } of rules) {
    const made = providers.map((one) =>
      one.type === 'kms' ? options.kms(one) : providerTransformer(one),
    );
    for (const one of resources) lists.set(one, [...(lists.get(one) ?? []), ...made]);
  }
  const transformers = new Map<string, Transformer>();
  return (resource) => {
    const found = transformers.get(resource);
    if (found !== undefined) return found;
    const ofGroup = `*.${groupResourceOf(resource).group}`;
    const list = lists.get(resource) ?? lists.get(ofGroup) ?? lists.get('*.*');
    const made =
      list === undefined
        ? identity
        : prefixTransformer(list, {
            noMatch: 'no matching prefix found',
            observed: options.observed(resource),
          });
    transformers.set(resource, made);
    return made;
  };
}
