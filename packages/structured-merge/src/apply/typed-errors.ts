/** One complaint about a value that does not fit its type. */
export interface TypedProblem {
  /** Path below where the walk began, as messages show it; empty for the value itself. */
  readonly path: string;
  readonly message: string;
}

/** A value does not fit its schema; the message is upstream's. */
export class TypedError extends Error {
  readonly problems: readonly TypedProblem[];

  constructor(problems: readonly TypedProblem[]) {
    super(showProblems(problems));
    this.name = 'TypedError';
    this.problems = problems;
  }
}

function showProblem({ path, message }: TypedProblem): string {
  return path === '' ? message : `${path}: ${message}`;
}

/** One problem as it is, several as a list. */
function showProblems(problems: readonly TypedProblem[]): string {
  if (problems.length === 1) return showProblem(problems[0]!);
  return ['errors:', ...problems.map((problem) => `  ${showProblem(problem)}`)].join('\n');
}
