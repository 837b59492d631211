import {
  type ConfigurationFormat,
  decodeConfiguration,
  listType,
  structType,
  textType,
} from '@wheelhouse/codec';
import { type Dialect, member, required } from '@wheelhouse/machinery';
import type { ScopeRequirement } from '../quota/quota-scopes.ts';
import { objectsOf, refuse, textOf, textsOf } from './file.ts';

/** What may only be taken up where a quota counts it. */
export interface LimitedResource {
  readonly group: string;
  readonly resource: string;
  /** Parts of names: amounts of what has one of them in its name are limited. */
  readonly matchContains: readonly string[];
  readonly matchScopes: readonly ScopeRequirement[];
}

const texts = listType(textType);
const configurationType = structType('ResourceQuotaConfiguration', {
  limitedResources: listType(
    structType('LimitedResource', {
      apiGroup: textType,
      resource: textType,
      matchContains: texts,
      matchScopes: listType(
        structType('ScopedResourceSelectorRequirement', {
          scopeName: textType,
          operator: textType,
          values: texts,
        }),
      ),
    }),
  ),
});

export const resourceQuotaFormat = {
  kind: 'ResourceQuotaConfiguration',
  group: 'apiserver.config',
  versions: { v1: configurationType },
} as const satisfies ConfigurationFormat;

/** Reads the configuration of ResourceQuota, by its name now or earlier. Rejects with ConfigurationError. */
export async function readLimitedResources(
  text: string,
  dialect: Dialect,
): Promise<readonly LimitedResource[]> {
  const isOlder = text.includes(`${dialect.group('resourcequota.admission')}/`);
  const { object } = await decodeConfiguration(
    text,
    isOlder
      ? {
          kind: 'Configuration',
          group: dialect.group('resourcequota.admission'),
          versions: { v1beta1: configurationType, v1alpha1: configurationType },
        }
      : { ...resourceQuotaFormat, group: dialect.group(resourceQuotaFormat.group) },
  );
  const limited = objectsOf(member(object, 'limitedResources')).map((one) => ({
    group: textOf(member(one, 'apiGroup')),
    resource: textOf(member(one, 'resource')),
    matchContains: textsOf(member(one, 'matchContains')),
    matchScopes: objectsOf(member(one, 'matchScopes')).map((scope) => ({
      scopeName: textOf(member(scope, 'scopeName')),
      operator: textOf(member(scope, 'operator')),
      values: textsOf(member(scope, 'values')),
    })),
  }));
  refuse(
    limited.flatMap(({ resource }, index) =>
      resource === '' ? [required(`limitedResources[${index}].resource`)] : [],
    ),
  );
  return limited;
}
