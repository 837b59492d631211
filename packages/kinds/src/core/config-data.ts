import { createPrivateKey, createPublicKey, type KeyObject, X509Certificate } from 'node:crypto';
import { type PemBlock, parseExactJson, pemBlocks } from '@wheelhouse/codec';
import {
  appendAll,
  configMapKey,
  type Dialect,
  dnsSubdomain,
  errorText,
  type FieldError,
  forbiddenField,
  goValue,
  invalid,
  isObject,
  problemText,
  required,
  ruleErrors,
  setMember,
  tooLong,
} from '@wheelhouse/machinery';
import { ageColumn, column, nameColumn, sizeAt, textAt } from '../cells.ts';
import { defineKind, steppedDefaults } from '../define.ts';
import type { ConfigMap, Secret } from '../gen/types/core/v1.ts';
import type { ColumnDef, Findings, ResourceDef, Stored } from '../resource-def.ts';
import {
  errorSteps,
  flatMapSteps,
  immutable,
  keyed,
  sameOrEmptySteps,
  sortedKeys,
} from '../rules/checks.ts';
import { forEachSteps } from '../rules/fill.ts';

/** The column with the number of entries of a ConfigMap or Secret. */
const dataColumn: ColumnDef = column('Data', (object) => sizeAt(object, 'data', 'binaryData'), {
  description: 'Number of entries.',
});

/** ConfigMap: named strings and bytes, at most 1 MiB in total. */
export function configMap(dialect: Dialect): ResourceDef {
  return defineKind<ConfigMap>({
    dialect,
    facts: 'core',
    kind: 'ConfigMap',
    scope: 'Namespaced',
    shortNames: ['cm'],
    versions: [{ version: 'v1', columns: [nameColumn, dataColumn, ageColumn] }],
    strategy: {
      extraMetadataChecks: { '': ['change', 'whole'] },
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (_, object, old) =>
        old.immutable === true ? validateChange(object, old) : validate(object),
    },
    example: () => ({ data: { greeting: 'hello' }, binaryData: { raw: 'AAEC' } }),
  });
}

/** Upper bound of the total size of a ConfigMap's or Secret's values, in bytes. */
const dataBytesMax = 1024 * 1024;

const validate = (object: Stored<ConfigMap>): Findings =>
  isClearlyValid(object) ? [] : validateData(object);

function* validateChange(
  object: Stored<ConfigMap>,
  old: Stored<ConfigMap>,
): Generator<void, FieldError[]> {
  return [...(yield* validateImmutableData(object, old)), ...(yield* errorSteps(validate(object)))];
}

function* validateData({
  data = {},
  binaryData = {},
}: Stored<ConfigMap>): Generator<void, FieldError[]> {
  let total = 0;
  const errors = yield* flatMapSteps(sortedKeys(data), (key) => {
    const path = keyed('data', key);
    const ofKey = ruleErrors(path, key, configMapKey);
    if (Object.hasOwn(binaryData, key)) {
      ofKey.push(invalid(path, key, 'duplicate of key present in binaryData'));
    }
    total += Buffer.byteLength(data[key] ?? '');
    return ofKey;
  });
  const ofBinaryData = yield* flatMapSteps(sortedKeys(binaryData), (key) => {
    total += decodedLength(binaryData[key] ?? '');
    return ruleErrors(keyed('binaryData', key), key, configMapKey);
  });
  appendAll(errors, ofBinaryData);
  // kube-apiserver's path for the object as a whole.
  if (total > dataBytesMax) errors.push(tooLong('[]', dataBytesMax));
  return errors;
}

/**
 * A fast check that accepts most objects: valid keys, no bytes, and little text in any encoding.
 */
function isClearlyValid({ data, binaryData }: Stored<ConfigMap>): boolean {
  if (binaryData !== undefined) return false;
  let length = 0;
  for (const key in data) {
    if (configMapKey(key).length > 0) return false;
    length += data[key]?.length ?? 0;
  }
  return length * 3 <= dataBytesMax;
}

/** The number of bytes that a base64 text encodes. */
function decodedLength(base64: string): number {
  return Buffer.byteLength(base64, 'base64');
}

/** Rejects changes of a ConfigMap or Secret whose `immutable` is true. */
function* validateImmutableData(
  object: Stored<ConfigMap> | Stored<Secret>,
  old: Stored<ConfigMap> | Stored<Secret>,
): Generator<void, FieldError[]> {
  if (old.immutable !== true) return [];
  const detail = 'field is immutable when `immutable` is set';
  const errors = object.immutable === true ? [] : [forbiddenField('immutable', detail)];
  if (!(yield* sameOrEmptySteps(object.data, old.data))) {
    errors.push(forbiddenField('data', detail));
  }
  const binary = (stored: Stored<ConfigMap | Secret>) =>
    'binaryData' in stored ? stored.binaryData : undefined;
  if (!(yield* sameOrEmptySteps(binary(object), binary(old)))) {
    errors.push(forbiddenField('binaryData', detail));
  }
  return errors;
}

/** Secret: named bytes, and a type that determines the required names. */
export function secret(dialect: Dialect): ResourceDef {
  const typeColumn = column('Type', (object) => textAt(object, 'type'), {
    description: 'Type of the secret.',
  });
  return defineKind<Secret>({
    dialect,
    facts: 'core',
    kind: 'Secret',
    scope: 'Namespaced',
    versions: [
      {
        version: 'v1',
        ...steppedDefaults(fillSecret),
        columns: [nameColumn, typeColumn, dataColumn, ageColumn],
      },
    ],
    storage: { fieldsOf: (object) => ({ type: object.type ?? '' }) },
    strategy: {
      extraMetadataChecks: { '': ['change', 'whole'] },
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validateSecret(object, dialect),
      *validateUpdate(_, object, old) {
        return [
          ...immutable('type', object.type, old.type),
          ...(yield* validateImmutableData(object, old)),
          ...(yield* validateSecret(object, dialect)),
        ];
      },
      warnings: (object) => pairWarnings(object, dialect),
    },
    example: () => ({ type: 'Opaque', data: { password: 'c2VzYW1l' } }),
  });
}

/** Merges `stringData` into `data`, replacing keys of the same name, and sets the type. */
function* fillSecret(object: Stored<Secret>): Generator<void, void> {
  const { stringData } = object;
  if (stringData !== undefined && stringData !== null) {
    const data = object.data ?? {};
    yield* forEachSteps(Object.keys(stringData), (key) => {
      setMember(data, key, Buffer.from(stringData[key] ?? '', 'utf8').toString('base64'));
    });
    if (Object.keys(data).length > 0) object.data = data;
  }
  delete object.stringData;
  if ((object.type ?? '') === '') object.type = 'Opaque';
}

function* validateSecret(object: Stored<Secret>, dialect: Dialect): Generator<void, FieldError[]> {
  let total = 0;
  const errors = yield* flatMapSteps(sortedKeys(object.data), (key) => {
    total += decodedLength(object.data?.[key] ?? '');
    return ruleErrors(keyed('data', key), key, configMapKey);
  });
  if (total > dataBytesMax) errors.push(tooLong('data', dataBytesMax));
  return [...errors, ...validateType(object, dialect)];
}

function validateType(object: Stored<Secret>, dialect: Dialect): FieldError[] {
  const serviceAccountName = dialect.label('service-account.name');
  switch (object.type) {
    case dialect.label('service-account-token'): {
      const name = textAt(object, 'metadata', 'annotations', serviceAccountName);
      return name === '' ? [required(keyed('metadata.annotations', serviceAccountName))] : [];
    }
    case dialect.label('dockercfg'):
      return validateJsonKey(object, '.dockercfg');
    case dialect.label('dockerconfigjson'):
      return validateJsonKey(object, '.dockerconfigjson');
    case dialect.label('basic-auth'):
      return has(object, 'username') || has(object, 'password')
        ? []
        : requiredKeys(object, ['username', 'password']);
    case dialect.label('ssh-auth'):
      return (object.data?.['ssh-privatekey'] ?? '') === ''
        ? [required(keyed('data', 'ssh-privatekey'))]
        : [];
    case dialect.label('tls'):
      return requiredKeys(object, ['tls.crt', 'tls.key']);
    default:
      return [];
  }
}

/** Validates the JSON of a key; errors do not contain the secret content. */
function validateJsonKey(object: Stored<Secret>, key: string): FieldError[] {
  if (!has(object, key)) return [required(keyed('data', key))];
  // Go's decoder reports single bytes, which Latin-1 maps to characters.
  const bytes = Buffer.from(object.data?.[key] ?? '', 'base64').toString('latin1');
  const problem = jsonObjectProblem(bytes);
  if (problem === undefined) return [];
  return [invalid(keyed('data', key), '<secret contents redacted>', problem)];
}

const has = (object: Stored<Secret>, key: string) => Object.hasOwn(object.data ?? {}, key);

/** Returns Go's error for a text that is not a JSON object; it quotes at most one character. */
function jsonObjectProblem(text: string): string | undefined {
  try {
    const { value } = parseExactJson(text, { depthMax: 10_000 });
    if (value === null || isObject(value)) return undefined;
    const type = 'map[string]interface {}';
    return problemText({ code: 'misfit', what: goValue(value), type });
  } catch (error) {
    return errorText(error);
  }
}

function requiredKeys(object: Stored<Secret>, keys: readonly string[]): FieldError[] {
  return keys.filter((key) => !has(object, key)).map((key) => required(keyed('data', key)));
}

function pairWarnings({ type, data = {} }: Stored<Secret>, dialect: Dialect): string[] {
  if (type !== dialect.label('tls')) return [];
  const [certificate, key] = ['tls.crt', 'tls.key'].map((name) =>
    Buffer.from((Object.hasOwn(data, name) ? data[name] : undefined) ?? '', 'base64').toString(),
  );
  const problem = keyPairProblem(certificate ?? '', key ?? '');
  return problem === undefined ? [] : [problem];
}

/** Returns Go's error for a certificate and a private key (PEM) that are not a pair. */
export function keyPairProblem(certificatePem: string, keyPem: string): string | undefined {
  const certificates = pemBlocks(certificatePem);
  const certificate = certificates.find(({ type }) => type === 'CERTIFICATE');
  if (certificate === undefined) return noCertificate(certificates);
  const keys = pemBlocks(keyPem);
  const key = keys.find(({ type }) => type.endsWith('PRIVATE KEY'));
  if (key === undefined) return noKey(keys);
  let publicKey: KeyObject;
  try {
    publicKey = new X509Certificate(certificate.text).publicKey;
  } catch {
    return 'x509: malformed certificate';
  }
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(key.text);
  } catch {
    return 'tls: failed to parse private key';
  }
  if (publicKey.asymmetricKeyType !== privateKey.asymmetricKeyType) {
    return 'tls: private key type does not match public key type';
  }
  const isPair = createPublicKey(privateKey).equals(publicKey);
  return isPair ? undefined : 'tls: private key does not match public key';
}

function noCertificate(blocks: readonly PemBlock[]): string {
  const [first, ...more] = blocks;
  if (first === undefined) return 'tls: failed to find any PEM data in certificate input';
  if (more.length === 0 && first.type.endsWith('PRIVATE KEY')) {
    return (
      'tls: failed to find certificate PEM data in certificate input, but did find a private key; ' +
      'PEM inputs may have been switched'
    );
  }
  return (
    'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of ' +
    `the following types: ${typesOf(blocks)}`
  );
}

const typesOf = (blocks: readonly PemBlock[]) => `[${blocks.map(({ type }) => type).join(' ')}]`;

function noKey(blocks: readonly PemBlock[]): string {
  const [first, ...more] = blocks;
  if (first === undefined) return 'tls: failed to find any PEM data in key input';
  if (more.length === 0 && first.type === 'CERTIFICATE') {
    return 'tls: found a certificate rather than a key in the PEM for the private key';
  }
  return (
    'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping ' +
    `PEM blocks of the following types: ${typesOf(blocks)}`
  );
}
