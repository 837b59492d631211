import { type ApiObject, type JsonObject, jsonEqual } from '@wheelhouse/machinery';
import { crdSchema } from '../apiextensions/crd-schema.ts';
import { defaultCrd } from '../apiextensions/custom-resource-definition.ts';
import { textAt } from '../cells.ts';
import { crdOf } from '../custom/definition.ts';
import { ensure, fill, objectAt, objectsAt } from '../rules/fill.ts';
import type { OlderKind } from './contract.ts';

/**
 * CustomResourceDefinition `v1beta1`, in which the members of a single version are at the top
 * level, a schema is optional, and unspecified members are kept by default.
 */
export function olderApiExtensions(): readonly OlderKind[] {
  const facts = 'apiextensions';
  return [
    {
      facts,
      kind: 'CustomResourceDefinition',
      older: [
        {
          facts,
          version: 'v1beta1',
          life: {
            introduced: 7,
            deprecated: 16,
            removed: 22,
            replacement: { group: facts, version: 'v1', kind: 'CustomResourceDefinition' },
          },
          schema: () => crdSchema('v1beta1'),
          defaulting: 'alone',
          defaults: fillDefaults,
          toStorage,
          fromStorage,
        },
      ],
    },
  ];
}

function fillDefaults(object: ApiObject): void {
  const spec = ensure(object, 'spec');
  fill(spec, { scope: 'Namespaced' });
  fill(spec, { preserveUnknownFields: true });
  const name = textAt(spec, 'version');
  const [first] = objectsAt(spec, 'versions');
  if (first === undefined && name !== '') {
    spec['versions'] = [{ name, served: true, storage: true }];
  }
  if (name === '' && first !== undefined) spec['version'] = textAt(first, 'name');
  const conversion = ensure(spec, 'conversion');
  fill(conversion, { strategy: 'None' });
  if (conversion['strategy'] === 'Webhook') {
    fill(conversion, { conversionReviewVersions: ['v1beta1'] });
  }
  fill(objectAt(conversion, 'webhookClientConfig', 'service'), { port: 443 });
  ensure(spec, 'names');
  defaultCrd(crdOf(object));
}

/** Top-level members and their names in the versions of `v1`. */
const moved = [
  ['validation', 'schema'],
  ['subresources', 'subresources'],
  ['additionalPrinterColumns', 'additionalPrinterColumns'],
  ['selectableFields', 'selectableFields'],
] as const;

function toStorage(object: ApiObject): ApiObject {
  const spec = ensure(object, 'spec');
  const versions = objectsAt(spec, 'versions');
  for (const [top, own] of moved) {
    const value = spec[top];
    delete spec[top];
    if (value === undefined || value === null) continue;
    for (const version of versions) version[own] = structuredClone(value);
  }
  delete spec['version'];
  for (const version of versions) renamePaths(version, { from: 'JSONPath', to: 'jsonPath' });
  const conversion = objectAt(spec, 'conversion');
  if (conversion === undefined) return object;
  const { webhookClientConfig, conversionReviewVersions, ...rest } = conversion;
  spec['conversion'] = rest;
  if (webhookClientConfig === undefined && conversionReviewVersions === undefined) return object;
  rest['webhook'] = {
    ...(webhookClientConfig === undefined ? {} : { clientConfig: webhookClientConfig }),
    conversionReviewVersions: conversionReviewVersions ?? null,
  };
  return object;
}

/** Renames the member with the path of each printer column. */
function renamePaths(owner: JsonObject, change: { from: string; to: string }): void {
  for (const column of objectsAt(owner, 'additionalPrinterColumns')) {
    const path = column[change.from];
    if (path === undefined) continue;
    delete column[change.from];
    column[change.to] = path;
  }
}

function fromStorage(object: ApiObject): ApiObject {
  const spec = ensure(object, 'spec');
  const versions = objectsAt(spec, 'versions');
  for (const version of versions) renamePaths(version, { from: 'jsonPath', to: 'JSONPath' });
  const [first] = versions;
  for (const [top, own] of first === undefined ? [] : moved) {
    const value = first?.[own];
    if (!versions.every((version) => jsonEqual(version[own] ?? null, value ?? null))) continue;
    for (const version of versions) delete version[own];
    if (value !== undefined) spec[top] = value;
  }
  if (first !== undefined) spec['version'] = textAt(first, 'name');
  const conversion = objectAt(spec, 'conversion');
  if (conversion === undefined) return object;
  const { webhook: _, ...rest } = conversion;
  const webhook = objectAt(conversion, 'webhook');
  const { clientConfig, conversionReviewVersions } = webhook ?? {};
  if (clientConfig !== undefined) rest['webhookClientConfig'] = clientConfig;
  if (conversionReviewVersions !== undefined) {
    rest['conversionReviewVersions'] = conversionReviewVersions;
  }
  spec['conversion'] = rest;
  return object;
}
