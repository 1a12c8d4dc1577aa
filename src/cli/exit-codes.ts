/** The exit codes of every command; documented in `tram --help`. */
export const ExitCode = {
  fine: 0,
  failure: 1,
  usage: 2,
  verificationFailed: 3,
  interrupted: 130,
} as const;
