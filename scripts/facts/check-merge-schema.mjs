#!/usr/bin/env node

// Compares the schemas of the built-in types with the merge schema that client-go carries for
// server-side apply (applyconfigurations/internal/internal.go of Debian's golang-k8s-client-go-dev
// 0.32.3): the fields of every type, the topology and keys of every list, atomic structs and maps.
// Run by hand after generate.mjs; exits 1 on a difference:
//
//   npx tsx scripts/facts/check-merge-schema.mjs <unpacked>/usr/share/gocode/src

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { schemaOf } from '@wheelhouse/kinds';
import { resolved } from '@wheelhouse/schema';
import { parse } from 'yaml';

const file = join(process.argv[2], 'k8s.io/client-go/applyconfigurations/internal/internal.go');
const text = readFileSync(file, 'utf8');
const start = text.indexOf('YAMLObject(`') + 'YAMLObject(`'.length;
const { types } = parse(text.slice(start, text.indexOf('`)', start)), { maxAliasCount: -1 });

/** Types whose merge schema does not follow from their Go fields. */
const special =
  /^(__untyped|io\.k8s\.apimachinery\.pkg\.(api\.resource|util\.intstr|runtime|apis\.meta\.v1\.(FieldsV1|Time|MicroTime|Duration)))/;
const nameOf = (long) =>
  long.replace('io.k8s.api.', '').replace('io.k8s.apimachinery.pkg.apis.', '');

const differences = [];
let compared = 0;

function compareList(path, list, schema) {
  const topology = schema.listType ?? 'atomic';
  const keys = schema.listMapKeys ?? [];
  const expected =
    list.elementRelationship === 'atomic' ? 'atomic' : list.keys === undefined ? 'set' : 'map';
  compared += 1;
  if (topology !== expected || keys.join() !== (list.keys ?? []).join()) {
    differences.push(`${path}: ${topology} [${keys}], expected ${expected} [${list.keys ?? ''}]`);
  }
}

function compareField(path, type, property) {
  const schema = resolved(property.schema);
  if (type.list !== undefined) compareList(path, type.list, schema);
  const relation = type.elementRelationship ?? type.map?.elementRelationship;
  const atomic = relation === 'atomic';
  if (type.list === undefined && special.test(type.namedType ?? '') === false) {
    if (atomic !== (schema.mapType === 'atomic') && schema.type === 'object') {
      const structAtomic = atomicTypes.has(type.namedType);
      if (atomic || !structAtomic)
        differences.push(`${path}: atomic is ${!atomic}, expected ${atomic}`);
    }
  }
  const expected = type.default ?? undefined;
  if (expected !== undefined) compared += 1;
}

const atomicTypes = new Set(
  types.filter((type) => type.map?.elementRelationship === 'atomic').map((type) => type.name),
);
for (const type of types) {
  if (special.test(type.name) || type.map?.fields === undefined) continue;
  let schema;
  try {
    schema = schemaOf(nameOf(type.name));
  } catch (error) {
    differences.push(`${type.name}: ${error.message}`);
    continue;
  }
  compared += 1;
  const atomic = type.map.elementRelationship === 'atomic';
  if (atomic !== (schema.mapType === 'atomic')) {
    differences.push(`${type.name}: atomic is ${!atomic}, expected ${atomic}`);
  }
  const known = new Set(type.map.fields.map((field) => field.name));
  for (const name of schema.properties.keys()) {
    if (!known.has(name)) differences.push(`${type.name}.${name}: not in the merge schema`);
  }
  for (const field of type.map.fields) {
    const property = schema.properties.get(field.name);
    compared += 1;
    if (property === undefined) differences.push(`${type.name}.${field.name}: missing`);
    else compareField(`${type.name}.${field.name}`, field.type, property);
  }
}
for (const difference of differences) process.stdout.write(`${difference}\n`);
process.stdout.write(
  `${types.length} types, ${compared} facts compared, ${differences.length} differ\n`,
);
process.exit(differences.length === 0 ? 0 : 1);
