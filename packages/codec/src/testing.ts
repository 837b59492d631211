import { runInOnePiece } from '@wheelhouse/machinery';
import { LineCounter, parseDocument } from 'yaml';
import { decodeYaml, YamlError } from './yaml.ts';
import { treeParsing, treeSteps } from './yaml-tree.ts';

/** Decodes a text as the library alone would. */
export function decodedByLibrary(text: string) {
  const lines = new LineCounter();
  const document = parseDocument(text, { ...treeParsing, lineCounter: lines });
  const [error] = document.errors;
  if (error !== undefined) return { line: lines.linePos(error.pos[0]).line };
  return runInOnePiece(treeSteps(document, lines, { valuesMax: 100_000 })).value;
}

/** Decodes a text, and counts the turns of the event loop that it takes. */
export async function decodedInTurns(text: string) {
  let turns = 0;
  const isWanted = () => {
    turns += 1;
    return true;
  };
  try {
    const { value } = await decodeYaml(Buffer.from(text), { valuesMax: 100_000, isWanted });
    return { value, turns };
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    // An error in the first line names no line.
    return { value: { line: Number(/line (\d+)/.exec(error.message)?.[1] ?? 1) }, turns };
  }
}
