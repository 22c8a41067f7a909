export const projectRoot: string;

export function build(options?: { readonly upTo?: "src/store/generated" | "dist"; readonly force?: boolean }): Promise<void>;

export function bundle(options: { readonly entries: Readonly<Record<string, string>>; readonly outdir: string }): Promise<void>;
