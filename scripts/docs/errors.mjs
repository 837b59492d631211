// The tables of errors, from the catalogue of reasons.
import { fieldErrorTypes, statusReasons } from '@wheelhouse/machinery';
import { cell, code, table } from './markdown.mjs';

/** The reasons of a Status, then those of its causes. */
export function errorTables() {
  const reasons = Object.entries(statusReasons)
    .sort(([, left], [, right]) => left.codes[0] - right.codes[0])
    .map(([name, { codes, meaning, remedy }]) => [
      code(name),
      codes.join(', '),
      cell(meaning),
      cell(remedy),
    ]);
  const fields = Object.entries(fieldErrorTypes).map(([name, meaning]) => [code(name), meaning]);
  return [
    '## Reasons of a Status\n',
    table(['Reason', 'Code', 'Meaning', 'What to do'], reasons),
    '## Reasons of field errors\n',
    table(['Reason', 'Meaning'], fields),
  ].join('\n');
}
