// Writes the packages that a release depends on as a CycloneDX document to standard output. Uses
// package-lock.json only, so that equal lock files result in equal documents. (`npm sbom
// --omit=dev` omits packages that development needs as well.)
import { readFileSync } from 'node:fs';

const read = (name) => JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), 'utf8'));
const { name, version, description, license } = read('package.json');
const lock = read('package-lock.json');
const folder = 'node_modules/';

function componentOf([path, entry]) {
  const packageName = path.slice(path.lastIndexOf(folder) + folder.length);
  return {
    type: 'library',
    'bom-ref': `${packageName}@${entry.version}`,
    name: packageName,
    version: entry.version,
    purl: `pkg:npm/${packageName.replace('@', '%40')}@${entry.version}`,
    scope: entry.optional === true ? 'optional' : 'required',
    ...(entry.license === undefined ? {} : { licenses: licensesOf(entry.license) }),
    ...(entry.integrity === undefined ? {} : { hashes: [hashOf(entry.integrity)] }),
  };
}

/** SPDX distinguishes license IDs from expressions that combine them. */
function licensesOf(text) {
  return /[ (]/.test(text) ? [{ expression: text }] : [{ license: { id: text } }];
}

function hashOf(integrity) {
  const [algorithm, digest] = integrity.split('-', 2);
  const content = Buffer.from(digest, 'base64').toString('hex');
  return { alg: algorithm.toUpperCase().replace('SHA', 'SHA-'), content };
}

const shipped = Object.entries(lock.packages).filter(
  ([path, { dev, devOptional, link }]) =>
    path.startsWith(folder) && link !== true && dev !== true && devOptional !== true,
);
const component = {
  type: 'application',
  'bom-ref': `${name}@${version}`,
  name,
  version,
  description,
  licenses: licensesOf(license),
};
const document = {
  $schema: 'http://cyclonedx.org/schema/bom-1.5.schema.json',
  bomFormat: 'CycloneDX',
  specVersion: '1.5',
  version: 1,
  metadata: { component },
  components: shipped.map(componentOf),
};
process.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
