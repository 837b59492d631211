// Writes the tables of the reference pages to docs/reference/generated/, each from the code that
// defines it. Run by scripts/docs.mjs, as a bundle.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { configurationTables } from './configuration.mjs';
import { errorTables } from './errors.mjs';
import { flagTables } from './flags.mjs';
import { gateTable } from './gates.mjs';
import { metricTable } from './metrics.mjs';

const folder = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'docs', 'reference');
const generated = join(folder, 'generated');

const tables = {
  flags: flagTables(),
  configuration: configurationTables(),
  errors: errorTables(),
  'feature-gates': gateTable(),
  metrics: await metricTable(),
};
rmSync(generated, { recursive: true, force: true });
mkdirSync(generated, { recursive: true });
for (const [name, text] of Object.entries(tables)) {
  writeFileSync(join(generated, `${name}.md`), text);
}
