import {
  ConfigurationError,
  type ConfigurationFormat,
  decodeConfiguration,
  listType,
  structType,
} from '@wheelhouse/codec';
import { schemaOf, validateTolerations } from '@wheelhouse/kinds';
import { type Dialect, isObject, type JsonObject, member } from '@wheelhouse/machinery';
import type { Schema } from '@wheelhouse/schema';
import { decodePlain, objectsOf } from './file.ts';

/** Tolerations where a namespace names none of its own. */
export interface ClusterTolerations {
  readonly defaults: readonly JsonObject[];
  /** Those pods may have; any when empty. */
  readonly allowed: readonly JsonObject[];
}

export const podTolerationFormat = (): ConfigurationFormat => {
  const tolerations: Schema = listType(schemaOf('core.v1.Toleration'));
  const type = structType('Configuration', { default: tolerations, whitelist: tolerations });
  return {
    kind: 'Configuration',
    of: 'PodTolerationRestriction',
    group: 'podtolerationrestriction.admission',
    versions: { v1alpha1: type },
  };
};

/** Reads the configuration of PodTolerationRestriction. Rejects with ConfigurationError. */
export async function readClusterTolerations(
  text: string,
  dialect: Dialect,
): Promise<ClusterTolerations> {
  const format = podTolerationFormat();
  const group = dialect.group(format.group);
  const { object } = await decodeConfiguration(text, { ...format, group });
  const defaults = objectsOf(member(object, 'default'));
  const allowed = objectsOf(member(object, 'whitelist'));
  const path = 'podtolerationrestriction';
  const errors = [
    ...validateTolerations(defaults, `${path}.default`),
    ...validateTolerations(allowed, `${path}.whitelist`),
  ];
  if (errors.length === 0) return { defaults, allowed };
  const messages = errors.map(({ field, message }) => `${field}: ${message}`);
  throw new ConfigurationError(`invalid config: [${messages.join(', ')}]`);
}

/** Selectors by namespace, and the one of those that have none. */
export type NodeSelectors = ReadonlyMap<string, string>;

/** The namespace's name under which stands what others take. */
export const clusterDefaultSelector = 'clusterDefaultNodeSelector';

/** Reads the configuration of PodNodeSelector. Rejects with ConfigurationError. */
export async function readNodeSelectors(text: string): Promise<NodeSelectors> {
  const whole = await decodePlain(text);
  const found = member(whole, 'podNodeSelectorPluginConfig') ?? {};
  if (!isObject(found)) throw new ConfigurationError('podNodeSelectorPluginConfig is no map');
  const entries = Object.entries(found).map(([name, value]): [string, string] => {
    if (typeof value === 'string') return [name, value];
    throw new ConfigurationError(`podNodeSelectorPluginConfig.${name} is no text`);
  });
  return new Map(entries);
}
