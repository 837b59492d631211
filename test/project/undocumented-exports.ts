import ts from 'typescript';

/**
 * Finds exported declarations without a docstring directly above them and returns their names, in
 * source order. The docstring of an overload also counts for the signatures after it. The tree may
 * be parsed without documentation comments.
 */
export function undocumentedExports(tree: ts.SourceFile): string[] {
  const found: string[] = [];
  let documented = '';
  for (const statement of tree.statements) {
    const name = declaredName(statement, tree);
    if (hasDocstring(statement, tree)) documented = name;
    else if (isExported(statement) && name !== documented) found.push(name);
  }
  return found;
}

function declaredName(statement: ts.Statement, tree: ts.SourceFile): string {
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.map(({ name }) => name.getText(tree)).join(', ');
  }
  const named = ts.isFunctionDeclaration(statement) || ts.isClassDeclaration(statement);
  return named || isType(statement) ? (statement.name?.text ?? '') : '';
}

function isType(
  statement: ts.Statement,
): statement is ts.InterfaceDeclaration | ts.TypeAliasDeclaration | ts.EnumDeclaration {
  return (
    ts.isInterfaceDeclaration(statement) ||
    ts.isTypeAliasDeclaration(statement) ||
    ts.isEnumDeclaration(statement)
  );
}

/** Whether a declaration has the word `export`; lists of other modules' exports do not count. */
function isExported(statement: ts.Statement): boolean {
  const modifiers = ts.canHaveModifiers(statement) ? ts.getModifiers(statement) : undefined;
  return modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false;
}

/** Comments that an empty line separates from the declaration describe the file. */
function hasDocstring(statement: ts.Statement, tree: ts.SourceFile): boolean {
  const { text } = tree;
  const comment = ts.getLeadingCommentRanges(text, statement.pos)?.at(-1);
  if (comment === undefined || !text.startsWith('/**', comment.pos)) return false;
  return !/\n\s*\n/.test(text.slice(comment.end, statement.getStart(tree)));
}
