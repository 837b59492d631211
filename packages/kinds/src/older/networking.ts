import type { ApiObject, JsonObject } from '@wheelhouse/machinery';
import { textAt } from '../cells.ts';
import { fillAbsent, objectAt, objectsAt } from '../rules/fill.ts';
import type { OlderKind, OlderVersion } from './contract.ts';

/** Ingress before `v1`: backends have flat members for the Service, and paths need no type. */
const ingress: Omit<OlderVersion, 'facts' | 'version'> = {
  defaults(object) {
    for (const path of pathsOf(object)) fillAbsent(path, { pathType: 'ImplementationSpecific' });
  },
  toStorage: (object) =>
    renameBackends(object, { from: 'backend', to: 'defaultBackend', backend: serviceOf }),
  fromStorage: (object) =>
    renameBackends(object, { from: 'defaultBackend', to: 'backend', backend: flattenService }),
};

/** Older versions of Ingress and NetworkPolicy. */
export function olderNetworking(): readonly OlderKind[] {
  return [
    {
      facts: 'networking',
      kind: 'Ingress',
      older: [
        { facts: 'networking', version: 'v1beta1', ...ingress },
        { facts: 'extensions', version: 'v1beta1', ...ingress },
      ],
    },
    {
      facts: 'networking',
      kind: 'NetworkPolicy',
      older: [{ facts: 'extensions', version: 'v1beta1' }],
    },
  ];
}

const pathsOf = (object: JsonObject): readonly JsonObject[] =>
  objectsAt(object, 'spec', 'rules').flatMap((rule) => objectsAt(rule, 'http', 'paths'));

/** Converts every backend, and renames the member of the default one. */
function renameBackends(
  object: ApiObject,
  change: { from: string; to: string; backend: (backend: JsonObject) => void },
): ApiObject {
  const spec = objectAt(object, 'spec');
  const standard = objectAt(spec, change.from);
  if (spec !== undefined && standard !== undefined) {
    delete spec[change.from];
    spec[change.to] = standard;
    change.backend(standard);
  }
  for (const path of pathsOf(object)) {
    const backend = objectAt(path, 'backend');
    if (backend !== undefined) change.backend(backend);
  }
  return object;
}

function serviceOf(backend: JsonObject): void {
  const { serviceName, servicePort } = backend;
  delete backend['serviceName'];
  delete backend['servicePort'];
  const isNumber = typeof servicePort === 'number';
  const isUnset = servicePort === undefined || servicePort === null || servicePort === 0;
  const name = typeof serviceName === 'string' ? serviceName : '';
  if (name === '' && isUnset) return;
  const port = isUnset ? {} : isNumber ? { number: servicePort } : { name: servicePort };
  backend['service'] = { name, port };
}

function flattenService(backend: JsonObject): void {
  const service = objectAt(backend, 'service');
  if (service === undefined) return;
  delete backend['service'];
  backend['serviceName'] = textAt(service, 'name');
  const port = objectAt(service, 'port');
  backend['servicePort'] = textAt(port, 'name') || (port?.['number'] ?? 0);
}
