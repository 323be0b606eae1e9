/**
 * Scripts that make a shell ask rnix for completions. They hold no knowledge of the commands, so they stay right when those change.
 *
 * They ask `rnix complete -- WORDS…`, whose lines are `WORD<tab>ABOUT`, with `:files` where a file can stand too.
 */

const BASH = `# Completions of rnix for bash. In ~/.bashrc: eval "$(rnix completions bash)"
_rnix() {
  local line words=() files=
  COMPREPLY=()
  while IFS= read -r line; do
    if [ "$line" = :files ]; then files=1; else COMPREPLY+=("\${line%%$'\\t'*}"); fi
  done < <("\${COMP_WORDS[0]}" complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  if [ -n "$files" ]; then
    compopt -o filenames 2>/dev/null
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}")
  fi
}
complete -F _rnix rnix
`;

const ZSH = `#compdef rnix
# Completions of rnix for zsh. In ~/.zshrc, after compinit: eval "$(rnix completions zsh)"
_rnix() {
  local line word files
  local -a shown
  for line in "\${(@f)$("\${words[1]}" complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    if [[ "$line" == :files ]]; then
      files=1
    elif [[ -n "$line" ]]; then
      word=\${line%%$'\\t'*}
      shown+=("\${word//:/\\\\:}:\${line#*$'\\t'}")
    fi
  done
  (( \${#shown} )) && _describe -t rnix rnix shown
  [[ -n "$files" ]] && _files
}
compdef _rnix rnix
`;

const FISH =
  `# Completions of rnix for fish. In ~/.config/fish/config.fish: rnix completions fish | source
function __rnix_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] complete -- $words[2..-1] 2>/dev/null)
        if test "$line" = :files
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
complete -c rnix -f -a '(__rnix_complete)'
`;

/** By shell. */
export const COMPLETION_SCRIPTS: { readonly [shell: string]: string } = {
  bash: BASH,
  zsh: ZSH,
  fish: FISH,
};
