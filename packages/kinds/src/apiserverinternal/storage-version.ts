import {
  type Dialect,
  dns1035Label,
  dnsSubdomain,
  duplicate,
  type FieldError,
  invalid,
  type NameRule,
  qualifiedName,
  required,
  ruleErrors,
  seenBefore,
  truncateText,
} from '@wheelhouse/machinery';
import { ageColumn, column, firstValues, nameColumn, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import type {
  ServerStorageVersion,
  StorageVersion,
  StorageVersionCondition,
} from '../gen/types/apiserverinternal/v1alpha1.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { flatMapSteps } from '../rules/checks.ts';

/** StorageVersion: the version in which each server stores the objects of a resource. */
export function storageVersion(dialect: Dialect): ResourceDef {
  const common = (object: Stored<StorageVersion>) =>
    (object.status?.commonEncodingVersion ?? '') || '<unset>';
  const columns = [
    nameColumn,
    column('CommonEncodingVersion', common, {
      description: 'Version that all servers store; empty if they differ.',
    }),
    column('StorageVersions', serverVersions, { description: 'Version that each server stores.' }),
    ageColumn,
  ];
  return defineKind<StorageVersion>({
    dialect,
    facts: 'apiserverinternal',
    kind: 'StorageVersion',
    scope: 'Cluster',
    versions: [{ version: 'v1alpha1', columns }],
    strategy: {
      extraMetadataChecks: { '': [], status: [] },
      validateName,
      hasStatus: true,
      resetFields: { '': ['status'], status: ['metadata', 'spec'] },
      validateUpdate: (context, object) =>
        context.subresource === 'status' ? validateStatus(object) : [],
      allowUnconditionalUpdate: false,
    },
    example: () => ({ metadata: { name: 'core.pods' }, spec: {} }),
  });
}

/** The table cell with the storage versions of the first few servers. */
function serverVersions(object: Stored<StorageVersion>): string {
  const servers = object.status?.storageVersions ?? [];
  return firstValues(
    servers.map((server) => `${server?.apiServerID ?? ''}=${server?.encodingVersion ?? ''}`),
  );
}

/** Validates a name of the form `group.resource`, where `core` is the core group. */
function validateName(name: string): readonly string[] {
  const dot = name.lastIndexOf('.');
  if (dot < 0) return ['name must be in the form of <group>.<resource>'];
  return [
    ...dnsSubdomain(name.slice(0, dot)).map((message) => `the group segment ${message}`),
    ...dns1035Label(name.slice(dot + 1)).map((message) => `the resource segment ${message}`),
  ];
}

function* validateStatus(object: Stored<StorageVersion>): Generator<void, FieldError[]> {
  const servers = object.status?.storageVersions ?? [];
  const path = 'status.storageVersions';
  const isRepeated = seenBefore();
  const conditions = object.status?.conditions ?? [];
  const lastIndex = new Map<string, number>();
  const needed = (condition: Stored<StorageVersionCondition>, member: string, field: string) =>
    textAt(condition, member) === ''
      ? [required(`${field}.${member}`, `${member} cannot be empty`)]
      : [];
  return [
    ...(yield* flatMapSteps(servers, function* (server, index) {
      const field = `${path}[${index}]`;
      const id = server.apiServerID ?? '';
      const repeated = isRepeated(id) ? [duplicate(`${field}.apiServerID`, id)] : [];
      return [...repeated, ...(yield* validateServer(server, field))];
    })),
    ...validateCommon(
      object,
      servers.map(({ encodingVersion }) => encodingVersion ?? ''),
    ),
    ...(yield* flatMapSteps(conditions, (condition, index) => {
      const field = `status[${index}]`;
      const type = condition.type ?? '';
      const before = lastIndex.get(type);
      lastIndex.set(type, index);
      const detail = `the type of the condition is not unique, it also appears in conditions[${before}]`;
      return [
        ...(before === undefined ? [] : [invalid(`${field}.type`, type, detail)]),
        ...ruleErrors(`${field}.type`, type, qualifiedName),
        ...ruleErrors(`${field}.status`, condition.status ?? '', qualifiedName),
        ...needed(condition, 'reason', field),
        ...needed(condition, 'message', field),
      ];
    })),
  ];
}

/** Upper bound of the characters of a list of versions in an error. */
const decodableTextMax = 8 * 1024;

function* validateServer(
  server: Stored<ServerStorageVersion>,
  path: string,
): Generator<void, FieldError[]> {
  const encoding = server.encodingVersion ?? '';
  const decodable = server.decodableVersions ?? [];
  const served = server.servedVersions ?? [];
  const wrong = (field: string, apiVersion: string) => {
    const problem = apiVersionProblem(apiVersion);
    return problem === undefined ? [] : [invalid(field, apiVersion, problem)];
  };
  const decodableSet = new Set(decodable);
  const lacksEncoding = `decodableVersions must include encodingVersion ${encoding}`;
  const decodableText = truncateText(decodable.join(' '), decodableTextMax);
  yield;
  const lacksServed = (version: string) =>
    `individual served version : ${version} must be included in decodableVersions : [${decodableText}]`;
  return [
    ...ruleErrors(`${path}.apiServerID`, server.apiServerID ?? '', dnsSubdomain),
    ...wrong(`${path}.encodingVersion`, encoding),
    ...(yield* flatMapSteps(decodable, (version, index) =>
      wrong(`${path}.decodableVersions[${index}]`, version),
    )),
    ...(decodableSet.has(encoding)
      ? []
      : [invalid(`${path}.decodableVersions`, decodable, lacksEncoding)]),
    ...(yield* flatMapSteps(served, (version, index) => {
      const field = `${path}.servedVersions[${index}]`;
      const errors = wrong(field, version);
      return decodableSet.has(version)
        ? errors
        : [...errors, invalid(field, version, lacksServed(version))];
    })),
  ];
}

const apiVersionForm =
  'an apiVersion is a DNS-1035 label, which must consist of lower case alphanumeric characters or ' +
  "'-', start with an alphabetic character, and end with an alphanumeric character (e.g. " +
  "'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?') with an " +
  "optional DNS subdomain prefix and '/' (e.g. 'example.com/MyVersion')";

function apiVersionProblem(apiVersion: string): string | undefined {
  const parts = apiVersion.split('/');
  if (parts.length > 2) return apiVersionForm;
  const problemsOf = (name: 'group' | 'version', text: string, rule: NameRule) =>
    (text === '' ? ['must be non-empty'] : rule(text)).map((problem) => `${name} part: ${problem}`);
  const problems = [
    ...(parts.length === 2 ? problemsOf('group', parts[0] ?? '', dnsSubdomain) : []),
    ...problemsOf('version', parts.at(-1) ?? '', dns1035Label),
  ];
  return problems.length === 0 ? undefined : problems.join(',');
}

function validateCommon(
  object: Stored<StorageVersion>,
  encodings: readonly string[],
): FieldError[] {
  const path = 'status.commonEncodingVersion';
  const common = object.status?.commonEncodingVersion;
  const [first] = encodings;
  const agreed = new Set(encodings).size === 1 ? first : undefined;
  if (common === agreed) return [];
  if (agreed === undefined) {
    const detail =
      'should be nil if servers do not agree on the same encoding version, or if there is no server reporting the supported versions yet';
    return [invalid(path, common, detail)];
  }
  const which = common === undefined ? 'the common' : 'the actual common';
  return [invalid(path, common ?? null, `${which} encoding version is ${agreed}`)];
}
