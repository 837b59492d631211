import {
  appendAll,
  type FieldError,
  forbiddenField,
  invalid,
  invalidGo,
  type JsonObject,
  type LabelSelector,
  required,
  validateLabelSelector,
} from '@wheelhouse/machinery';
import { textAt } from '../../cells.ts';
import { trustBundleNameProblems } from '../../certificates/cluster-trust-bundle.ts';
import { signerNameErrors } from '../../certificates/signer-name.ts';
import type {
  ClusterTrustBundleProjection,
  DownwardAPIVolumeFile,
  DownwardAPIVolumeSource,
  KeyToPath,
  ProjectedVolumeSource,
  ServiceAccountTokenProjection,
  VolumeProjection,
} from '../../gen/types/core/v1.ts';
import type { Findings, Stored } from '../../resource-def.ts';
import { errorSteps, flatMapSteps, tokenLifetimeErrors } from '../../rules/checks.ts';
import { objectAt, objectsAt, wholeNumber } from '../../rules/fill.ts';
import { intAt, requireTexts, validatePlainPath } from '../fields.ts';
import { goSelector } from '../go-text.ts';
import type { PodRules } from '../rules.ts';
import { validateFieldRef, validateResourceRef } from './environment.ts';

/** Upper bound of the mode of a file. */
const modeMax = 0o777;

function validateMode(object: JsonObject, path: string, name: string): FieldError[] {
  const mode = intAt(object, name);
  if (mode === undefined || (mode >= 0 && mode <= modeMax)) return [];
  return [
    invalid(`${path}.${name}`, mode, 'must be a number between 0 and 0777 (octal), both inclusive'),
  ];
}

function validateItems(source: JsonObject, path: string): Generator<void, FieldError[]> {
  return flatMapSteps(objectsAt(source, 'items'), (item, index) =>
    validateItem(item, `${path}.items[${index}]`),
  );
}

function validateItem(item: Stored<KeyToPath>, path: string): FieldError[] {
  return [
    ...requireTexts(item, path, 'key', 'path'),
    ...validatePlainPath(`${path}.path`, item.path ?? ''),
    ...validateMode(item, path, 'mode'),
  ];
}

/** Returns the rule of a volume with files from the object that the member `name` names. */
const keyedVolume = (name: string) =>
  function* (source: JsonObject, path: string): Generator<void, FieldError[]> {
    return [
      ...requireTexts(source, path, name),
      ...validateMode(source, path, 'defaultMode'),
      ...(yield* validateItems(source, path)),
    ];
  };

/** Validates a `secret` volume in steps. */
export const validateSecretVolume = keyedVolume('secretName');
/** Validates a `configMap` volume in steps. */
export const validateConfigMapVolume = keyedVolume('name');

/** Fields of the pod that a volume may expose. */
const volumeFields = [
  'metadata.annotations',
  'metadata.labels',
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
];

/** Validates a `downwardAPI` volume in steps; kube-apiserver reports its files without an index. */
export function* validateDownwardVolume(
  source: Stored<DownwardAPIVolumeSource>,
  path: string,
): Generator<void, FieldError[]> {
  return [
    ...validateMode(source, path, 'defaultMode'),
    ...(yield* flatMapSteps(source.items ?? [], (file) => validateDownwardFile(file, path))),
  ];
}

function validateDownwardFile(file: Stored<DownwardAPIVolumeFile>, path: string): FieldError[] {
  const field = file.fieldRef;
  const resource = file.resourceFieldRef;
  const errors = [
    ...requireTexts(file, path, 'path'),
    ...validatePlainPath(`${path}.path`, file.path ?? ''),
  ];
  if (field !== undefined) {
    appendAll(errors, validateFieldRef(field, `${path}.fieldRef`, volumeFields));
    if (resource !== undefined) {
      const detail = 'fieldRef and resourceFieldRef can not be specified simultaneously';
      errors.push(invalid(path, 'resource', detail));
    }
  } else if (resource !== undefined) {
    const where = `${path}.resourceFieldRef`;
    appendAll(errors, validateResourceRef(resource, where, { inVolume: true }));
  } else {
    errors.push(required(path, 'one of fieldRef and resourceFieldRef is required'));
  }
  return [...errors, ...validateMode(file, path, 'mode')];
}

/** Validates a `projected` volume, which combines files of several sources, in steps. */
export function* validateProjectedVolume(
  source: Stored<ProjectedVolumeSource>,
  path: string,
  { rules }: { rules: PodRules },
): Generator<void, FieldError[]> {
  const paths = new Set<string>();
  const ofSources = yield* flatMapSteps(source.sources ?? [], (projection, index) =>
    validateProjection(projection, { path, index, paths, rules }),
  );
  return [...validateMode(source, path, 'defaultMode'), ...ofSources];
}

interface ProjectionPlace {
  /** The path of the volume, where kube-apiserver reports duplicate paths of files. */
  readonly path: string;
  readonly index: number;
  /** The paths of the files in earlier sources. */
  readonly paths: Set<string>;
  readonly rules: PodRules;
}

function* validateProjection(
  source: Stored<VolumeProjection>,
  place: ProjectionPlace,
): Generator<void, FieldError[]> {
  const own = `${place.path}.sources[${place.index}]`;
  const errors: FieldError[] = [];
  let count = 0;
  function* validatePart(
    name: string,
    rule: (part: JsonObject, path: string) => Findings,
  ): Generator<void, void> {
    const part = objectAt(source, name);
    if (part === undefined) return;
    count += 1;
    appendAll(errors, yield* errorSteps(rule(part, `${own}.${name}`)));
  }
  const keyedFiles = (part: JsonObject, path: string) => validateKeyedFiles(part, path, place);
  yield* validatePart('secret', keyedFiles);
  yield* validatePart('configMap', keyedFiles);
  yield* validatePart('downwardAPI', (part, path) =>
    flatMapSteps(objectsAt(part, 'items'), (file) => [
      ...validateDownwardFile(file, path),
      ...validateUniquePath(textAt(file, 'path'), place),
    ]),
  );
  yield* validatePart('serviceAccountToken', (part, path) => validateToken(part, path, place));
  yield* validatePart('clusterTrustBundle', (part, path) => validateTrust(part, path, place));
  if (count > 1) {
    errors.push(forbiddenField(own, 'may not specify more than 1 volume type per source'));
  }
  return errors;
}

function* validateKeyedFiles(
  source: JsonObject,
  path: string,
  place: ProjectionPlace,
): Generator<void, FieldError[]> {
  const name = textAt(source, 'name');
  return [
    ...requireTexts(source, path, 'name'),
    ...(yield* flatMapSteps(objectsAt(source, 'items'), (item, index) => [
      ...validateItem(item, `${path}.items[${index}]`),
      ...validateUniquePath(textAt(item, 'path'), place, name),
    ])),
  ];
}

function validateUniquePath(file: string, place: ProjectionPlace, shown = file): FieldError[] {
  return file === '' ? [] : conflictOf(file, place, shown);
}

/** Rejects a file at the path of an earlier one; `shown` is the value in the error. */
function conflictOf(file: string, place: ProjectionPlace, shown = file): FieldError[] {
  if (place.paths.has(file)) return [invalid(place.path, shown, 'conflicting duplicate paths')];
  place.paths.add(file);
  return [];
}

function validateToken(
  token: Stored<ServiceAccountTokenProjection>,
  path: string,
  place: ProjectionPlace,
): FieldError[] {
  const seconds = wholeNumber(token.expirationSeconds) ?? 0;
  const errors = tokenLifetimeErrors(`${path}.expirationSeconds`, seconds);
  const file = token.path ?? '';
  const fileField = `${place.path}.path`;
  if (file === '') errors.push(required(fileField));
  else if (!place.rules.allow.tokenPaths) appendAll(errors, validatePlainPath(fileField, file));
  return errors;
}

/** Validates a source of certificates: one bundle by name, or all bundles of a signer. */
function validateTrust(
  trust: Stored<ClusterTrustBundleProjection>,
  path: string,
  place: ProjectionPlace,
): FieldError[] {
  const file = trust.path ?? '';
  return [
    ...validateBundleChoice(trust, path),
    ...(file === '' ? [required(`${path}.path`)] : []),
    ...validatePlainPath(`${path}.path`, file),
    ...conflictOf(file, place),
  ];
}

function validateBundleChoice(
  trust: Stored<ClusterTrustBundleProjection>,
  path: string,
): FieldError[] {
  const name = trust.name;
  const signer = trust.signerName;
  const selector = trust.labelSelector;
  if (name !== undefined && signer !== undefined) {
    return [invalid(path, trust, 'only one of name and signerName may be used')];
  }
  if (name !== undefined) {
    const field = `${path}.labelSelector`;
    const alone = 'labelSelector must be unset if name is specified';
    return [
      ...(name === '' ? [required(`${path}.name`, 'must be a valid object name')] : []),
      ...bundleNameProblems(name).map((problem) =>
        invalid(`${path}.name`, name, `not a valid clustertrustbundlename: ${problem}`),
      ),
      ...(selector === undefined ? [] : [invalidGo(field, () => goSelector(selector), alone)]),
    ];
  }
  if (signer === undefined) return [required(path, 'either name or signerName must be specified')];
  return [
    ...(signer === '' ? [required(`${path}.signerName`, 'must be a valid signer name')] : []),
    ...signerNameErrors(signer, `${path}.signerName`),
    ...validateLabelSelector(selector as LabelSelector | undefined, `${path}.labelSelector`),
  ];
}

/**
 * Returns the errors of the name of a bundle. In a name with colons, everything before the last
 * colon is the name of a signer.
 */
function bundleNameProblems(name: string): readonly string[] {
  const end = name.lastIndexOf(':');
  return trustBundleNameProblems(name, end < 0 ? '' : name.slice(0, end).replaceAll(':', '/'));
}
