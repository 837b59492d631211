import { appendAll, cut, type Dialect, getOrMake } from '@wheelhouse/machinery';
import { factsByGroup, groupStems as generatedStems } from './gen/index.ts';

/** Group names without the vendor suffix, for directories that exist only in this file. */
const stemsByHand: Readonly<Record<string, string>> = {
  apiextensions: 'apiextensions',
  apiregistration: 'apiregistration',
};

/** Group names without the vendor suffix, by the directory of their facts. */
export const groupStems: Readonly<Record<string, string>> = { ...generatedStems, ...stemsByHand };

/** The group of a directory: `rbac` -> `rbac.authorization.k8s.io`. */
export function groupOfDirectory(dialect: Dialect, directory: string): string {
  return dialect.group(groupStems[directory] ?? directory);
}

const directories = new WeakMap<Dialect, ReadonlyMap<string, string>>();

/** The directory of a group's facts; undefined for a group without any, such as a custom one. */
export function directoryOfGroup(dialect: Dialect, group: string): string | undefined {
  const byGroup = getOrMake(directories, dialect, () => {
    const names = Object.keys(groupStems);
    return new Map(names.map((name) => [groupOfDirectory(dialect, name), name]));
  });
  return byGroup.get(group);
}

/** The parsed marks of a field; thousands of fields share a few dozen combinations. */
export interface FieldMarks {
  readonly omitEmpty: boolean;
  readonly optional: boolean;
  readonly required: boolean;
  readonly listType: string | undefined;
  readonly listMapKeys: readonly string[];
  readonly mapType: string | undefined;
  readonly patchStrategies: readonly string[];
  readonly patchMergeKey: string | undefined;
  /** The type's name in Go (`v1.RestartPolicy`) if it does not follow from the type. */
  readonly goName: string | undefined;
}

/** One field of a built-in type. */
export interface FieldFacts {
  /** JSON name; empty for an embedded struct, whose fields belong to this type in JSON. */
  readonly name: string;
  /** Protobuf field number; undefined for fields without one. */
  readonly number: number | undefined;
  /** `*` pointer, `[]` list, `{}` map, then a scalar or a full type name (`core.v1.Pod`). */
  readonly type: string;
  readonly marks: FieldMarks;
  /** JSON text of the declared default. */
  readonly default: string | undefined;
}

/** A struct of a built-in group. */
interface StructFacts {
  readonly name: string;
  readonly fields: readonly FieldFacts[];
  /** Whether it has its own apiVersion and kind. */
  readonly isKind: boolean;
  readonly structType: string | undefined;
  /** Releases as `1.22`. */
  readonly introduced: string | undefined;
  readonly deprecated: string | undefined;
  readonly removed: string | undefined;
  readonly replacement: { group: string; version: string; kind: string } | undefined;
}

/** Facts about one API version of a group (`core.v1`). */
interface VersionFacts {
  readonly struct: (name: string) => StructFacts | undefined;
  readonly hasStruct: (name: string) => boolean;
  readonly structNames: readonly string[];
  /** Named lists and maps: name -> type. */
  readonly aliases: ReadonlyMap<string, string>;
  /** String types with a closed list of values. */
  readonly enums: ReadonlyMap<string, readonly string[]>;
}

const scalars = new Set(['string', 'bool', 'int32', 'int64', 'uint8', 'float64', 'bytes']);
const parsedGroups = new Map<string, ReadonlyMap<string, VersionFacts>>();

/** Facts of a version such as `core.v1` or `meta.v1`; undefined for unknown versions. */
export function versionFacts(groupVersion: string): VersionFacts | undefined {
  const [group = '', version = ''] = groupVersion.split('.');
  let versions = parsedGroups.get(group);
  if (versions === undefined) {
    const texts = [factsByGroup, factsByHand].map((table) =>
      Object.hasOwn(table, group) ? (table[group] ?? '') : '',
    );
    versions = parseGroup(group, texts);
    parsedGroups.set(group, versions);
  }
  return versions.get(version);
}

/** The versions in the tables of a directory. */
export function versionsOfFacts(directory: string): readonly string[] {
  const texts = [factsByGroup, factsByHand].map((table) =>
    Object.hasOwn(table, directory) ? (table[directory] ?? '') : '',
  );
  const versions = texts.flatMap((text) => [...text.matchAll(/^@(\w+)$/gm)]);
  return [...new Set(versions.map(([, version = '']) => version))];
}

/** Facts of a struct by its full name (`core.v1.Pod`). */
export function structFacts(typeName: string): StructFacts | undefined {
  const { groupVersion, name } = splitTypeName(typeName);
  return versionFacts(groupVersion)?.struct(name);
}

/** Whether the tables contain a struct of this full name; cheaper than reading its facts. */
export function hasStructFacts(typeName: string): boolean {
  const { groupVersion, name } = splitTypeName(typeName);
  return versionFacts(groupVersion)?.hasStruct(name) === true;
}

/** `core.v1.Pod` -> `core.v1` and `Pod`. */
export function splitTypeName(typeName: string): { groupVersion: string; name: string } {
  const dot = typeName.lastIndexOf('.');
  return { groupVersion: typeName.slice(0, dot), name: typeName.slice(dot + 1) };
}

/** Splits a table into versions; scripts/facts/generate.mjs describes the format. */
function parseGroup(group: string, texts: readonly string[]): ReadonlyMap<string, VersionFacts> {
  const parts = new Map<string, { own: string; named: string[]; blocks: string[] }>();
  for (const text of texts.flatMap((source) => source.split('\n@').slice(1))) {
    const [head = '', ...blocks] = text.split('\n#');
    const [version = '', ...named] = head.split('\n');
    const existingPart = parts.get(version);
    if (existingPart === undefined)
      parts.set(version, { own: `${group}.${version}`, named, blocks });
    else appendAll(existingPart.blocks, blocks);
  }
  return new Map([...parts].map(([version, part]) => [version, versionOf(part)]));
}

/** Structs are parsed on demand, because a start needs few of them. */
function versionOf(part: {
  own: string;
  named: readonly string[];
  blocks: readonly string[];
}): VersionFacts {
  const { own } = part;
  const aliases = new Map<string, string>();
  const enums = new Map<string, readonly string[]>();
  for (const line of part.named) {
    const space = line.indexOf(' ');
    const [name, value] = [line.slice(1, space), line.slice(space + 1)];
    if (line.startsWith('=')) aliases.set(name, qualified(value, own));
    if (line.startsWith('!')) enums.set(name, JSON.parse(value) as string[]);
  }
  const texts = new Map(part.blocks.map((block) => [block.slice(0, nameEnd(block)), block]));
  const parsed = new Map<string, StructFacts>();
  const qualify = qualifier(own);
  const struct = (name: string): StructFacts | undefined => {
    let facts = parsed.get(name);
    const text = facts === undefined ? texts.get(name) : undefined;
    if (text !== undefined) {
      facts = parseStruct(text, qualify);
      parsed.set(name, facts);
    }
    return facts;
  };
  const hasStruct = (name: string) => texts.has(name);
  return { struct, hasStruct, structNames: [...texts.keys()], aliases, enums };
}

function nameEnd(block: string): number {
  const end = block.search(/[ \n]/);
  return end < 0 ? block.length : end;
}

function parseStruct(text: string, qualify: (type: string) => string): StructFacts {
  const [head = '', ...lines] = text.split('\n');
  const end = nameEnd(head);
  const fields = lines.filter((line) => line !== '').map((line) => fieldOf(line, qualify));
  return structOf(head.slice(0, end), head.slice(end + 1), fields);
}

/** Marks as name -> values; a mark without a value has the value `true`. */
function parseMarks(text: string): ReadonlyMap<string, readonly string[]> {
  const marks = new Map<string, string[]>();
  for (const word of text.split(' ')) {
    const [name, value = 'true'] = cut(word, '=');
    marks.set(name, [...(marks.get(name) ?? []), value]);
  }
  return marks;
}

function structOf(name: string, words: string, fields: readonly FieldFacts[]): StructFacts {
  const marks = parseMarks(words);
  const [group, version, kind] = marks.get('r')?.[0]?.split(',') ?? [];
  return {
    name,
    fields,
    isKind: marks.has('k'),
    structType: marks.get('s')?.[0],
    introduced: marks.get('i')?.[0],
    deprecated: marks.get('d')?.[0],
    removed: marks.get('x')?.[0],
    replacement:
      group === undefined || version === undefined || kind === undefined
        ? undefined
        : { group, version, kind },
  };
}

/** Optimized for code that runs once and is never compiled: few calls, all to V8 built-ins. */
function fieldOf(line: string, qualify: (type: string) => string): FieldFacts {
  // An embedded struct has `^` in place of a name and a space.
  const nameAt = line.startsWith('^') ? 0 : line.indexOf(' ');
  const numberAt = line.indexOf(' ', nameAt + 1);
  const typeAt = line.indexOf(' ', numberAt + 1);
  const typeEnd = typeAt < 0 ? line.length : typeAt;
  const defaultAt = line.indexOf(' v=', typeEnd);
  const marksEnd = defaultAt < 0 ? line.length : defaultAt;
  const number = line.slice(nameAt + 1, numberAt);
  return {
    name: line.slice(0, nameAt),
    number: number === '-' ? undefined : Number(number),
    type: qualify(line.slice(numberAt + 1, typeEnd)),
    marks: fieldMarks(line.slice(typeEnd + 1, marksEnd)),
    default: defaultAt < 0 ? undefined : line.slice(defaultAt + 3),
  };
}

const marksByText = new Map<string, FieldMarks>();

function fieldMarks(text: string): FieldMarks {
  let parsed = marksByText.get(text);
  if (parsed === undefined) {
    const marks = parseMarks(text);
    parsed = {
      omitEmpty: marks.has('e'),
      optional: marks.has('o'),
      required: marks.has('q'),
      listType: marks.get('l')?.[0],
      listMapKeys: marks.get('k') ?? [],
      mapType: marks.get('m')?.[0] ?? marks.get('s')?.[0],
      patchStrategies: marks.get('p')?.[0]?.split(',') ?? [],
      patchMergeKey: marks.get('y')?.[0],
      goName: marks.get('t')?.[0],
    };
    marksByText.set(text, parsed);
  }
  return parsed;
}

/** Returns a function that qualifies types of one version's tables, where local names are bare. */
function qualifier(own: string): (type: string) => string {
  const qualifiedNames = new Map<string, string>();
  return (type) => getOrMake(qualifiedNames, type, () => qualified(type, own));
}

function qualified(type: string, own: string): string {
  let start = 0;
  while (start < type.length && '*[]{}'.includes(type[start] ?? '')) start += 1;
  const base = type.slice(start);
  return scalars.has(base) || base.includes('.') ? type : `${type.slice(0, start)}${own}.${base}`;
}

/** The types of an APIService that are the same in both versions. */
const apiServiceTypes = `#ServiceReference
namespace 1 string e
name 2 string e
port 3 *int32 e o
#APIServiceSpec
service 1 *ServiceReference e o
group 2 string e
version 3 string e
insecureSkipTLSVerify 4 bool e
caBundle 5 bytes e o l=atomic
groupPriorityMinimum 7 int32
versionPriority 8 int32`;

/** The types of a PodSecurityPolicy, which two groups served. */
const podSecurityPolicyTypes = `#PodSecurityPolicySpec
privileged 1 bool e o
defaultAddCapabilities 2 []string e o
requiredDropCapabilities 3 []string e o
allowedCapabilities 4 []string e o
volumes 5 []string e o
hostNetwork 6 bool e o
hostPorts 7 []HostPortRange e o
hostPID 8 bool e o
hostIPC 9 bool e o
seLinux 10 SELinuxStrategyOptions
runAsUser 11 RunAsUserStrategyOptions
runAsGroup 22 *RunAsGroupStrategyOptions e o
supplementalGroups 12 SupplementalGroupsStrategyOptions
fsGroup 13 FSGroupStrategyOptions
readOnlyRootFilesystem 14 bool e o
defaultAllowPrivilegeEscalation 15 *bool e o
allowPrivilegeEscalation 16 *bool e o
allowedHostPaths 17 []AllowedHostPath e o
allowedFlexVolumes 18 []AllowedFlexVolume e o
allowedCSIDrivers 23 []AllowedCSIDriver e o
allowedUnsafeSysctls 19 []string e o
forbiddenSysctls 20 []string e o
allowedProcMountTypes 21 []string e o
runtimeClass 24 *RuntimeClassStrategyOptions e o
#AllowedHostPath
pathPrefix 1 string e
readOnly 2 bool e o
#AllowedFlexVolume
driver 1 string
#AllowedCSIDriver
name 1 string
#HostPortRange
min 1 int32
max 2 int32
#SELinuxStrategyOptions
rule 1 string
seLinuxOptions 2 *core.v1.SELinuxOptions e o
#RunAsUserStrategyOptions
rule 1 string
ranges 2 []IDRange e o
#RunAsGroupStrategyOptions
rule 1 string
ranges 2 []IDRange e o
#IDRange
min 1 int64
max 2 int64
#FSGroupStrategyOptions
rule 1 string e o
ranges 2 []IDRange e o
#SupplementalGroupsStrategyOptions
rule 1 string e o
ranges 2 []IDRange e o
#RuntimeClassStrategyOptions
allowedRuntimeClassNames 1 []string
defaultRuntimeClassName 2 *string e o`;

/** The flags of a kind and of its list, in the format of `gen/`. */
interface KindFlags {
  readonly kind: string;
  readonly list: string;
}

/** The types of one version of apiregistration. */
const apiServiceFacts = (version: string, flags: KindFlags) =>
  `
@${version}
#APIServiceList ${flags.list}
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e
items 2 []APIService
${apiServiceTypes}
#APIServiceCondition
type 1 string t=${version}.APIServiceConditionType
status 2 string t=${version}.ConditionStatus
lastTransitionTime 3 meta.v1.Time e o
reason 4 string e o
message 5 string e o
#APIServiceStatus
conditions 1 []APIServiceCondition e o l=map k=type p=merge y=type
#APIService ${flags.kind}
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e
spec 2 APIServiceSpec e
status 3 APIServiceStatus e
`.trimEnd();

/** The types of `v1beta1` of a group that served PodSecurityPolicies. */
const podSecurityPolicyFacts = (flags: KindFlags) => `
@v1beta1
#PodSecurityPolicy ${flags.kind}
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 PodSecurityPolicySpec e o
${podSecurityPolicyTypes}
#PodSecurityPolicyList ${flags.list}
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []PodSecurityPolicy
`;

/**
 * Facts about types that are not generated, in the format of `gen/`: groups in packages of their
 * own, and types that the release has removed.
 */
const factsByHand: Readonly<Record<string, string>> = {
  apiregistration: `${apiServiceFacts('v1', { kind: 'k c i=1.10', list: 'k' })}${apiServiceFacts(
    'v1beta1',
    {
      kind: 'k c i=1.7 d=1.19 r=apiregistration,v1,APIService',
      list: 'k i=1.7 d=1.19 r=apiregistration,v1,APIServiceList',
    },
  )}
`,
  policy: podSecurityPolicyFacts({
    kind: 'k c i=1.10 d=1.21 x=1.25',
    list: 'k i=1.10 d=1.21 x=1.25',
  }),
  extensions: podSecurityPolicyFacts({
    kind: 'k c i=1.2 d=1.11 x=1.16 r=policy,v1beta1,PodSecurityPolicy',
    list: 'k i=1.2 d=1.11 x=1.16 r=policy,v1beta1,PodSecurityPolicyList',
  }),
};
