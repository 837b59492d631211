#!/usr/bin/env node
// Writes packages/kinds/src/gen/: what the Go declarations of the built-in API types say about
// names, numbers and list semantics, as compact tables. Only facts are taken; no comment or code of
// upstream's.
//
// Where the declarations come from: Debian's packages golang-k8s-api-dev and
// golang-k8s-apimachinery-dev, version 0.32.3 (suite trixie), unpacked with `dpkg -x` into one
// directory. Its usr/share/gocode/src is the argument:
//
//   node scripts/facts/generate.mjs <unpacked>/usr/share/gocode/src
//
// Run by hand when the release changes, never by a test or a build; the output is committed.
//
// The tables, line by line (read by packages/kinds/src/facts.ts):
//   @<version>                          types of another version of the group follow: first its
//                                       named lists, maps and enums, then its structs
//   #<Type> [marks]                     a struct; marks: `k` a kind (has apiVersion and kind),
//                                       `n` namespaced, `c` cluster-wide, `s=` structType,
//                                       `i=` release that introduced it, `d=` deprecated,
//                                       `x=` removed, `r=` group,version,kind that replaces it
//   <json> <number> <type> [marks]      a field; number `-` if protobuf does not carry it; marks:
//                                       `e` omitempty, `o` optional, `q` required, `l=` listType,
//                                       `k=` listMapKey (may repeat), `m=` mapType, `s=` structType,
//                                       `p=` patchStrategy, `y=` patchMergeKey, `t=` what Go
//                                       calls the type, where that does not follow from it,
//                                       `v=` default (JSON; last on the line)
//   ^<number> <type>                    an embedded struct: its fields are this one's in JSON; in
//                                       protobuf they sit in message field <number>
//   =<Name> <type>                      a named list or map, or another name for a struct
//   !<Name> <json list>                 a string type marked as enum, with its constants
// A type is string, bool, int32, int64, uint8, float64, bytes, a name of the same version, or
// <group directory>.<version>.<Name>; before it `*` pointer, `[]` list, `{}` map from string.

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = process.argv[2];
if (root === undefined) {
  process.stderr.write('usage: generate.mjs <directory with k8s.io/api and k8s.io/apimachinery>\n');
  process.exit(2);
}
const out = join(dirname(fileURLToPath(import.meta.url)), '../../packages/kinds/src/gen');

const vendor = 'k8s.io';
const machinery = new Map([
  [`${vendor}/apimachinery/pkg/apis/meta/v1`, 'meta.v1'],
  [`${vendor}/apimachinery/pkg/apis/meta/v1beta1`, 'meta.v1beta1'],
  [`${vendor}/apimachinery/pkg/api/resource`, 'resource'],
  [`${vendor}/apimachinery/pkg/util/intstr`, 'intstr'],
  [`${vendor}/apimachinery/pkg/runtime`, 'runtime'],
  [`${vendor}/apimachinery/pkg/types`, 'types'],
]);
const primitives = new Set(['string', 'bool', 'int32', 'int64', 'uint8', 'float64', 'bytes']);
const special = new Set([
  'resource.Quantity',
  'intstr.IntOrString',
  'runtime.RawExtension',
  'runtime.Object',
  'meta.v1.Time',
  'meta.v1.MicroTime',
  'meta.v1.Duration',
  'meta.v1.FieldsV1',
  'meta.v1.Timestamp',
]);
const external = {
  'types.UID': 'string',
  'types.NodeName': 'string',
  'types.NamespacedName': 'string',
};

/** Maps a package path to `core.v1`; undefined outside the API. */
function packageName(path) {
  if (machinery.has(path)) return machinery.get(path);
  const match = new RegExp(`^${vendor}/api/([a-z]+)/(v[0-9a-z]+)$`).exec(path);
  return match === null ? undefined : `${match[1]}.${match[2]}`;
}

function importsOf(text) {
  const imports = new Map();
  for (const match of text.matchAll(/^(?:import\s+|\t)(?:(\w+)\s+)?"([^"]+)"$/gm)) {
    const name = packageName(match[2]);
    if (name !== undefined) imports.set(match[1] ?? match[2].split('/').at(-1), name);
  }
  return imports;
}

/** `*[]map[string]v1.X` -> `*[]{}core.v1.X`, names of the own package qualified with `own`. */
function typeOf(text, imports, own) {
  const go = text.trim();
  if (go === '[]byte') return 'bytes';
  if (go.startsWith('*')) return `*${typeOf(go.slice(1), imports, own)}`;
  if (go.startsWith('[]')) return `[]${typeOf(go.slice(2), imports, own)}`;
  const map = /^map\[[\w.]+\](.+)$/.exec(go);
  if (map !== null) return `{}${typeOf(map[1], imports, own)}`;
  if (go === 'int') return 'int64';
  if (primitives.has(go)) return go;
  const dot = go.indexOf('.');
  if (dot < 0) return `${own}.${go}`;
  const from = imports.get(go.slice(0, dot));
  const name = `${from ?? go.slice(0, dot)}.${go.slice(dot + 1)}`;
  return external[name] ?? name;
}

/** `*[]X` -> `[]v1.X`: the name of a field's type, without its pointer, in Go's reflection. */
function goNameOf(text, imports, own) {
  const go = text.trim();
  if (go.startsWith('*')) return goNameOf(go.slice(1), imports, own);
  if (go.startsWith('[]')) return `[]${goNameOf(go.slice(2), imports, own)}`;
  const map = /^map\[([\w.]+)\](.+)$/.exec(go);
  if (map !== null) {
    return `map[${goNameOf(map[1], imports, own)}]${goNameOf(map[2], imports, own)}`;
  }
  if (go === 'byte') return 'uint8';
  if (go === 'int' || primitives.has(go)) return go;
  const dot = go.indexOf('.');
  const name = dot < 0 ? `${own}.${go}` : `${imports.get(go.slice(0, dot))}${go.slice(dot)}`;
  const named = api.named.get(name);
  return (named?.isAlias === true ? named.type : name).split('.').slice(-2).join('.');
}

/** What a reader of the table would call a type. */
function goNameOfSettled(type, own) {
  if (type.startsWith('*')) return goNameOfSettled(type.slice(1), own);
  if (type.startsWith('[]')) return `[]${goNameOfSettled(type.slice(2), own)}`;
  if (type.startsWith('{}')) return `map[string]${goNameOfSettled(type.slice(2), own)}`;
  if (type === 'bytes') return '[]uint8';
  if (primitives.has(type)) return type;
  return (type.includes('.') ? type : `${own}.${type}`).split('.').slice(-2).join('.');
}

/** Markers (`+name=value`) of a comment block, as name -> list of values. */
function markersOf(comments) {
  const markers = new Map();
  for (const line of comments) {
    const match = /^\+([\w:.-]+)(?:=(.*))?$/.exec(line.trim());
    if (match === null) continue;
    const values = markers.get(match[1]) ?? [];
    values.push((match[2] ?? '').trim());
    markers.set(match[1], values);
  }
  return markers;
}

function tagOf(tags, name) {
  return new RegExp(`${name}:"([^"]*)"`).exec(tags)?.[1];
}

/** Reads the type and constant declarations of one Go file into `into`. */
function readGo(text, own, into) {
  const imports = importsOf(text);
  let comments = [];
  let struct;
  let constType;
  for (const line of text.split('\n')) {
    const trimmed = line.trim();
    if (trimmed.startsWith('//')) {
      comments.push(trimmed.slice(2));
      continue;
    }
    if (trimmed === '') continue;
    const markers = markersOf(comments);
    comments = [];
    if (struct !== undefined) {
      if (line === '}') struct = undefined;
      else readField({ line: trimmed, markers, imports, own, struct });
      continue;
    }
    const opened = /^type (\w+) struct \{$/.exec(line);
    if (opened !== null) {
      struct = { markers, fields: [] };
      into.structs.set(`${own}.${opened[1]}`, struct);
      continue;
    }
    const emptyStruct = /^type (\w+) struct ?\{\}/.exec(line);
    if (emptyStruct !== null) {
      into.structs.set(`${own}.${emptyStruct[1]}`, { markers, fields: [] });
      continue;
    }
    const named = /^type (\w+) (= )?([\w.[\]*]+)$/.exec(line);
    if (named !== null) {
      const type = typeOf(named[3], imports, own);
      into.named.set(`${own}.${named[1]}`, { type, markers, isAlias: named[2] !== undefined });
      continue;
    }
    const constant = /^(?:const\s+)?(\w+)\s+(\w[\w.]*)\s*=\s*("[^"]*")/.exec(trimmed);
    if (constant !== null) {
      constType = `${own}.${constant[2]}`;
      into.constants.set(`${own}.${constant[1]}`, {
        type: constType,
        value: JSON.parse(constant[3]),
      });
      continue;
    }
    const untyped = /^(?:const\s+)?(\w+)\s*=\s*(?:(\w+)\()?("[^"]*")\)?/.exec(trimmed);
    if (untyped !== null)
      into.constants.set(`${own}.${untyped[1]}`, {
        type: `${own}.${untyped[2] ?? ''}`,
        value: JSON.parse(untyped[3]),
      });
  }
}

function readField({ line, markers, imports, own, struct }) {
  const match = /^(?:(\w+)\s+)?([\w.[\]*]+)\s*`([^`]*)`/.exec(line);
  if (match === null) return;
  const json = tagOf(match[3], 'json');
  if (json === undefined || json === '-') return;
  const [name, ...options] = json.split(',');
  const protobuf = tagOf(match[3], 'protobuf');
  const number = protobuf?.split(',')[1];
  struct.fields.push({
    name,
    inline: name === '' && (options.includes('inline') || match[1] === undefined),
    omitEmpty: options.includes('omitempty'),
    number: number === undefined ? '-' : number,
    type: typeOf(match[2], imports, own),
    // Resolved later, when the other names of types in all packages are known.
    goName: () => goNameOf(match[2], imports, own),
    patchStrategy: tagOf(match[3], 'patchStrategy'),
    patchMergeKey: tagOf(match[3], 'patchMergeKey'),
    markers,
  });
}

const api = { structs: new Map(), named: new Map(), constants: new Map() };
const stems = new Map();

function readPackage(path, own) {
  const stem = own.split('.')[0];
  for (const file of readdirSync(join(root, path)).sort()) {
    if (!file.endsWith('.go') || /^zz_|_test\.go$|generated|_proto\.go$|_fuzz\.go$/.test(file))
      continue;
    const text = readFileSync(join(root, path, file), 'utf8');
    if (file === 'register.go') stems.set(stem, /GroupName = "([^"]*)"/.exec(text)?.[1] ?? '');
    readGo(text, own, api);
  }
}

for (const group of readdirSync(join(root, `${vendor}/api`), { withFileTypes: true })) {
  if (!group.isDirectory() || group.name === 'testdata') continue;
  for (const version of readdirSync(join(root, `${vendor}/api`, group.name))) {
    if (/^v\d/.test(version))
      readPackage(`${vendor}/api/${group.name}/${version}`, `${group.name}.${version}`);
  }
}
readPackage(`${vendor}/apimachinery/pkg/apis/meta/v1`, 'meta.v1');
readPackage(`${vendor}/apimachinery/pkg/apis/meta/v1beta1`, 'meta.v1beta1');

/** `type A b.B`: a struct under another name. */
const isRenamedStruct = (named) => !named.isAlias && api.structs.has(named.type);

/** Marked as an enum since then, but not in the documents of this release. */
const notYetEnums = new Set(['admissionregistration.v1.ScopeType']);
const isEnum = (name, named) =>
  named.type === 'string' && named.markers.has('enum') && !notYetEnums.has(name);

/**
 * Constants that are converted from constants of another type, which this reader does not
 * recognize.
 */
const converted = { 'discovery.v1.AddressType': ['IPv4', 'IPv6'] };

/** Resolves named scalars; enums, lists, maps, and structs keep their names. */
function settled(type, own) {
  const prefix = /^(?:\*|\[\]|\{\})*/.exec(type)[0];
  let base = type.slice(prefix.length);
  for (let hops = 0; hops < 8; hops += 1) {
    const named = api.named.get(base);
    if (named === undefined || special.has(base)) break;
    if (isEnum(base, named)) break;
    if (/^(\[\]|\{\})/.test(named.type)) break;
    if (isRenamedStruct(named)) break;
    base = named.type;
  }
  if (!primitives.has(base) && !special.has(base) && !api.structs.has(base) && !api.named.has(base))
    throw new Error(`unknown type ${type} in ${own}`);
  return prefix + (base.startsWith(`${own}.`) ? base.slice(own.length + 1) : base);
}

/** A `+default` value as JSON text; `ref(Name)` names a constant. */
function defaultOf(text, own) {
  const ref = /^ref\((.*)\)$/.exec(text);
  if (ref === null) return text;
  const constant = api.constants.get(`${own}.${ref[1].split('.').at(-1)}`);
  if (constant === undefined) throw new Error(`unknown default ${text} in ${own}`);
  return JSON.stringify(constant.value);
}

// The wire type follows from the type; a few tags upstream claim another, which its codec ignores.
function fieldLine(field, own) {
  const type = settled(field.type, own);
  if (field.inline) return `^${field.number} ${type}`;
  const { markers } = field;
  const marks = [];
  if (field.omitEmpty) marks.push('e');
  if (markers.has('optional')) marks.push('o');
  if (markers.has('required')) marks.push('q');
  if (markers.has('listType')) marks.push(`l=${markers.get('listType')[0]}`);
  for (const key of markers.get('listMapKey') ?? []) marks.push(`k=${key}`);
  if (markers.has('mapType')) marks.push(`m=${markers.get('mapType')[0]}`);
  if (markers.has('structType')) marks.push(`s=${markers.get('structType')[0]}`);
  if (field.patchStrategy !== undefined) marks.push(`p=${field.patchStrategy}`);
  if (field.patchMergeKey !== undefined) marks.push(`y=${field.patchMergeKey}`);
  const goName = field.goName();
  if (goName !== goNameOfSettled(type, own)) marks.push(`t=${goName}`);
  if (markers.has('default')) marks.push(`v=${defaultOf(markers.get('default')[0], own)}`);
  return [field.name, field.number, type, ...marks].join(' ');
}

function structLine(name, struct) {
  const { markers } = struct;
  const lifecycle = (stage) => markers.get(`k8s:prerelease-lifecycle-gen:${stage}`)?.[0];
  const marks = [];
  if (struct.fields.some((field) => field.inline && field.type === 'meta.v1.TypeMeta'))
    marks.push('k');
  if (markers.has('genclient')) marks.push(markers.has('genclient:nonNamespaced') ? 'c' : 'n');
  if (markers.has('structType')) marks.push(`s=${markers.get('structType')[0]}`);
  if (markers.has('mapType')) marks.push(`s=${markers.get('mapType')[0]}`);
  if (lifecycle('introduced')) marks.push(`i=${lifecycle('introduced')}`);
  if (lifecycle('deprecated')) marks.push(`d=${lifecycle('deprecated')}`);
  if (lifecycle('removed')) marks.push(`x=${lifecycle('removed')}`);
  if (lifecycle('replacement')) {
    const [group, version, kind] = lifecycle('replacement').split(',');
    marks.push(`r=${group.replace(`.${vendor}`, '')},${version},${kind}`);
  }
  return [`#${name}`, ...marks].join(' ');
}

/** Structs with at least one encoded field, or of a kind; helpers of the Go code are excluded. */
const isApiStruct = (name, struct) =>
  !special.has(name) && (struct.fields.length > 0 || reachable.has(name));

const reachable = new Set();
for (const struct of api.structs.values())
  for (const field of struct.fields) reachable.add(field.type.replace(/^(?:\*|\[\]|\{\})*/, ''));

function versionLines(own) {
  const lines = [`@${own.split('.')[1]}`];
  const mine = (name) => name.startsWith(`${own}.`) && !special.has(name);
  for (const [name, named] of api.named) {
    if (!mine(name)) continue;
    const short = name.slice(own.length + 1);
    if (/^(\[\]|\{\})/.test(named.type) || isRenamedStruct(named))
      lines.push(`=${short} ${settled(named.type, own)}`);
    else if (isEnum(name, named)) {
      const constants = [...api.constants.values()].filter(({ type }) => type === name);
      const values = [...constants.map(({ value }) => value), ...(converted[name] ?? [])];
      lines.push(`!${short} ${JSON.stringify([...new Set(values)].sort())}`);
    }
  }
  for (const [name, struct] of api.structs) {
    if (!mine(name) || !isApiStruct(name, struct)) continue;
    lines.push(structLine(name.slice(own.length + 1), struct));
    for (const field of struct.fields) lines.push(fieldLine(field, own));
  }
  return lines;
}

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const owns = [
  ...new Set([...api.structs.keys()].map((name) => name.split('.').slice(0, 2).join('.'))),
];
const groups = [...new Set(owns.map((own) => own.split('.')[0]))].sort();
const index = [];
for (const group of groups) {
  const text = owns
    .filter((own) => own.startsWith(`${group}.`))
    .flatMap(versionLines)
    .join('\n');
  if (/[`\\]|\$\{/.test(text)) throw new Error(`table of ${group} needs escapes`);
  writeFileSync(
    join(out, `${group}.ts`),
    `/** Facts about the types of \`${group}\`; made by scripts/facts/generate.mjs, do not edit. */\nexport const ${group}Facts = \`\n${text}\n\`;\n`,
  );
  index.push(group);
}
const stemOf = (group) => stems.get(group).replace(`.${vendor}`, '');
writeFileSync(
  join(out, 'index.ts'),
  [
    ...index.map((group) => `import { ${group}Facts } from './${group}.ts';`),
    '',
    '/** The table of each group, by the directory upstream keeps it in. Made by scripts/facts/generate.mjs. */',
    'export const factsByGroup: Readonly<Record<string, string>> = {',
    ...index.map((group) => `  ${group}: ${group}Facts,`),
    '};',
    '',
    '/** Group name without the vendor suffix, by directory. */',
    'export const groupStems: Readonly<Record<string, string>> = {',
    ...index.map((group) => `  ${group}: '${stemOf(group)}',`),
    '};',
    '',
  ].join('\n'),
);
